package kerberos

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"github.com/jcmturner/gokrb5/v8/keytab"
)

const maxKeytabBytes = 4 << 20

// keys are those of one principal.
type keys struct {
	*keytab.Keytab
	etypes []int32
}

// decodeKeytab finds the keys of a principal. What the library says of a bad file is not repeated: it holds the file, keys and
// all.
func decodeKeytab(from string, b []byte, p principal) (_ *keys, err error) {
	invalid := func(what string) error {
		return fmt.Errorf("kerberos: keytab %s: %s: %w", from, what, fs.ErrInvalid)
	}
	defer func() {
		if recover() != nil { // lengths that the library does not check
			err = invalid("it is cut off, or no keytab")
		}
	}()
	k := &keys{Keytab: keytab.New()}
	if k.Unmarshal(b) != nil {
		return nil, invalid("it is cut off, or no keytab")
	}
	// Of keys that were made in the same second the library takes the first.
	sort.SliceStable(k.Entries, func(i, j int) bool { return k.Entries[i].KVNO > k.Entries[j].KVNO })
	var others []string
	for _, e := range k.Entries {
		name := strings.Join(e.Principal.Components, "/") + "@" + e.Principal.Realm
		switch {
		case name != p.String():
			if !slices.Contains(others, name) {
				others = append(others, name)
			}
		case !slices.Contains(k.etypes, e.Key.KeyType):
			k.etypes = append(k.etypes, e.Key.KeyType)
		}
	}
	if len(k.etypes) == 0 {
		slices.Sort(others)
		return nil, fmt.Errorf("kerberos: keytab %s: %w %s: it has keys of %q only: give one of those as Principal, or another keytab", from, ErrUnknownPrincipal, p, others)
	}
	return k, nil
}

// readKeytab reads the keys that the options name.
func (o *Options) readKeytab(p principal) (*keys, error) {
	if o.Keytab == "" {
		return decodeKeytab("KeytabBytes", o.KeytabBytes, p)
	}
	path := strings.TrimPrefix(o.Keytab, "FILE:")
	b, err := readBounded(path, maxKeytabBytes)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("kerberos: keytab: %w: let the user of this process read it", err)
	case err != nil:
		return nil, fmt.Errorf("kerberos: keytab: %w", err)
	}
	return decodeKeytab(path, b, p)
}

// common are the encryption types of the list for which there is a key, so that the KDC does not choose another one.
func (k *keys) common(list []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(id int32) bool { return !slices.Contains(k.etypes, id) })
}
