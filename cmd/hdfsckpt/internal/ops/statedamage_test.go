package ops

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// tree lists all files with their content.
func tree(t *testing.T, fsys core.FileSystem, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for info, err := range fsys.List(t.Context(), dir) {
		require.NoError(t, err)
		name := path.Join(dir, info.Name)
		if info.IsDir() {
			files[name] = "directory"
			maps.Copy(files, tree(t, fsys, name))
			continue
		}
		r, err := fsys.Open(t.Context(), name)
		require.NoError(t, err)
		data := make([]byte, r.Size())
		if len(data) > 0 {
			_, err = r.ReadAt(data, 0)
			require.True(t, err == nil || errors.Is(err, io.EOF), "%v", err)
		}
		require.NoError(t, r.Close())
		files[name] = string(data)
	}
	return files
}

func TestNothingIsWrittenToACheckpointThatIsDamagedAndVerifySaysWhatIsWrong(t *testing.T) {
	drop := func(prefix string) func(map[string][]byte) {
		return func(files map[string][]byte) {
			maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, prefix) })
		}
	}
	put := func(name, text string) func(map[string][]byte) {
		return func(files map[string][]byte) { files[name] = []byte(text) }
	}
	directory := func(name string) func(map[string][]byte) {
		return func(files map[string][]byte) {
			delete(files, name)
			files[name+"/file"] = nil
		}
	}
	missing, corrupt := string(sparkckpt.FileMissing), string(sparkckpt.FileCorrupt)
	for name, c := range map[string]struct {
		damage     func(map[string][]byte)
		kind, path string
	}{
		"another partition is gone":     {drop("/ckpt/state/0/0/"), missing, "/ckpt/state/0"},
		"the last partition is gone":    {drop("/ckpt/state/0/1/"), missing, "/ckpt/state/0"},
		"a store is gone":               {drop("/ckpt/state/0/0/left-keyToNumValues/"), missing, "/ckpt/state/0"},
		"all operators are gone":        {func(files map[string][]byte) { drop("/ckpt/state/0/")(files); files["/ckpt/state/_x"] = nil }, missing, "/ckpt/state/0"},
		"a commit is empty":             {put("/ckpt/commits/6", ""), corrupt, "/ckpt/commits/6"},
		"an older commit is empty":      {put("/ckpt/commits/3", ""), corrupt, "/ckpt/commits/3"},
		"a commit is cut":               {put("/ckpt/commits/6", "v1\n"), corrupt, "/ckpt/commits/6"},
		"a commit of a later version":   {put("/ckpt/commits/6", "v99\n{}"), corrupt, "/ckpt/commits/6"},
		"a commit is a directory":       {directory("/ckpt/commits/6"), corrupt, "/ckpt/commits/6"},
		"a batch is a directory":        {directory("/ckpt/offsets/6"), corrupt, "/ckpt/offsets/6"},
		"a batch was not begun":         {drop("/ckpt/offsets/6"), missing, "/ckpt/offsets/6"},
		"no batch was begun":            {drop("/ckpt/offsets/"), missing, "/ckpt/offsets/6"},
		"no batch was committed":        {drop("/ckpt/commits/"), missing, "/ckpt/commits/5"},
		"a batch id without a version":  {put("/ckpt/commits/9223372036854775807", "v1\n{}"), corrupt, "/ckpt/commits/9223372036854775807"},
		"the metadata is a directory":   {directory("/ckpt/metadata"), corrupt, "/ckpt/metadata"},
		"the operator's metadata is no": {put("/ckpt/state/0/_metadata/metadata", ""), corrupt, "/ckpt/state/0/_metadata/metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			files := sparkFiles(t)
			c.damage(files)
			fsys := inMemory(t, files)
			verified, problems, err := StateVerify(t.Context(), core.OnlyOn(fsys), "mem:///ckpt", StateVerifyOptions{Parallel: 1})
			require.NoError(t, err)
			require.Empty(t, problems)
			require.Equal(t, report.ExitFindings, verified.ExitCode())
			var found []string
			for _, f := range verified.Findings {
				require.NotContains(t, f.Message, "-9223372036854775808")
				require.NotEmpty(t, f.Advice)
				found = append(found, f.Kind+" "+f.Path)
			}
			require.Contains(t, found, c.kind+" "+c.path)

			before := tree(t, fsys, "/ckpt")
			for verb, w := range works() {
				for _, all := range []bool{false, true} {
					opts := w.opts
					opts.Offline = true
					if all {
						opts.Partition, opts.Store = nil, nil
					}
					_, problems := w.do(t.Context(), core.OnlyOn(fsys), "mem:///ckpt", opts)
					require.NotEmpty(t, problems, verb)
				}
			}
			require.Equal(t, before, tree(t, fsys, "/ckpt"))
			listing, problems, err := StateList(t.Context(), core.OnlyOn(fsys), "mem:///ckpt")
			require.NoError(t, err)
			if len(listing.Stores) == 0 {
				require.NotEmpty(t, problems)
			}
		})
	}
}

func TestAStoreThatCannotBeReadIsUnknownAndTheOthersAreVerified(t *testing.T) {
	denied := "/ckpt/state/0/1/" + sweptStore
	for _, dir := range []string{denied, path.Dir(denied)} {
		fsys := faultfs.Wrap(inMemory(t, sparkFiles(t)), func(c faultfs.Call) faultfs.Fault {
			if c.Name == dir || strings.HasPrefix(c.Name, dir+"/") {
				return faultfs.Fault{Err: fs.ErrPermission}
			}
			return faultfs.Fault{}
		})
		verified, problems, err := StateVerify(t.Context(), core.OnlyOn(fsys), "mem:///ckpt", StateVerifyOptions{Parallel: 2})
		require.NoError(t, err)
		require.Empty(t, problems)
		require.Equal(t, report.ExitEnvironment, verified.ExitCode())
		require.Len(t, verified.Stores, 8)
		for _, s := range verified.Stores {
			if s.Partition == 0 || dir == denied && s.Store != sweptStore {
				require.Equal(t, report.Sound, s.Verdict, "%v", s)
				continue
			}
			require.Equal(t, report.Unknown, s.Verdict, "%v", s)
			require.Len(t, s.Findings, 1)
			require.Equal(t, string(sparkckpt.FileUnreadable), s.Findings[0].Kind)
		}
	}
}

func TestACheckpointWithoutStoresIsNotSentFromOneVerbToTheOther(t *testing.T) {
	fsys := memfs.New(memfs.Options{})
	require.NoError(t, fsys.MkdirAll(t.Context(), "/ckpt/state"))
	_, _, err := StateVerify(t.Context(), core.OnlyOn(fsys), "mem:///ckpt", StateVerifyOptions{Parallel: 1})
	var problem *report.Problem
	require.ErrorAs(t, err, &problem)
	require.NotContains(t, problem.Hint, "state ls")
}
