// Package fsurl opens file systems by URL. It is the one place that knows every implementation of [core.FileSystem]; all
// other packages are given one, or an [Opener], whose Open method is a core.Opener.
//
// A URL is one of
//
//	/path, path            a plain path: on the file system of Options.DefaultFS, which is the local one by default
//	file:/path             a local file, as Flink writes it
//	file:///path           the same, as Hadoop writes it
//	hdfs://ns1/path        on the cluster of a nameservice of the Hadoop configuration, whichever NameNode is active
//	hdfs://host:8020/path  on the cluster of that NameNode; without a port it is 8020
//	hdfs:///path           on the cluster of fs.defaultFS of the Hadoop configuration
//
// Nothing in a URL is escaped: "%20" is three characters of a name, as it is in Hadoop. Repeated and trailing slashes are
// dropped, "." and ".." are refused; only a relative path, which is made absolute first, may have them.
package fsurl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

// FileSystem is a core.FileSystem that its user must close.
type FileSystem interface {
	core.FileSystem
	io.Closer
}

// Options says how file systems are opened. The zero value is the documented default of every field.
type Options struct {
	// DefaultFS is the file system of plain paths, such as "hdfs://ns1" or "file:///", like Hadoop's fs.defaultFS. "" is the
	// local one.
	DefaultFS string

	// LocalBase is the directory that local names must lie in. "" is "/", which allows every name.
	LocalBase string

	// Local are the options of the local file system.
	Local localfs.Options

	// HDFS are the options of every HDFS: its configuration, the login, how files are made. The zero value takes all of it
	// from the environment: HADOOP_CONF_DIR, HADOOP_USER_NAME, KRB5_CONFIG, KRB5CCNAME.
	HDFS hdfsfs.Options
}

// Validate reports all problems of the options at once, each naming its field; the error is fs.ErrInvalid.
func (o Options) Validate() error {
	_, err := o.plan()
	return err
}

// Open opens the file system of a URL and returns it with the name that the URL has there. The caller must close it. The
// error is an *fs.PathError: fs.ErrInvalid for what is not a URL, has an unknown scheme or lies outside of
// Options.LocalBase, and whatever opening the file system fails with. It does not look whether the name exists.
//
// What hangs is left to be opened and closed in the background when ctx ends.
func Open(ctx context.Context, url string, opts Options) (fsys FileSystem, name string, err error) {
	o, err := NewOpener(opts)
	if err != nil {
		return nil, "", core.PathError("open", url, err)
	}
	fsys, name, err = o.openFS(ctx, url)
	if err != nil {
		if ctx.Err() != nil {
			go o.Close() //nolint:errcheck // of a file system that nobody has got
		}
		return nil, "", err
	}
	return fsys, name, nil
}

// plan is what the options come to.
type plan struct {
	defaultFS target // without a name
	localBase string
	local     localfs.Options
	hdfs      hdfsfs.Options
}

func (o Options) plan() (plan, error) {
	p := plan{defaultFS: target{scheme: schemeFile}, local: o.Local, hdfs: o.HDFS}
	var problems []error
	if o.DefaultFS != "" {
		var err error
		if p.defaultFS, err = parseDefaultFS(o.DefaultFS); err != nil {
			problems = append(problems, fmt.Errorf("Options.DefaultFS: %w", err))
		}
	}
	base := o.LocalBase
	if base == "" {
		base = "/"
	}
	base, err := filepath.Abs(base)
	if err == nil {
		p.localBase = filepath.ToSlash(base)
		err = core.CheckName("open", "/", p.localBase)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("Options.LocalBase: %w", err))
	}
	if err := o.Local.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("Options.Local: %w", err))
	}
	if err := o.HDFS.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("Options.HDFS: %w", err))
	}
	return p, errors.Join(problems...)
}

// open opens the file system of a target.
func (p plan) open(ctx context.Context, t target) (FileSystem, error) {
	switch t.scheme {
	case schemeFile:
		f, err := localfs.Open(p.localBase, p.local)
		if err != nil {
			return nil, err // no interface that holds a nil pointer
		}
		return f, nil
	case schemeHDFS:
		f, err := hdfsfs.Open(ctx, t.authority, p.hdfs)
		if err != nil {
			return nil, err // no interface that holds a nil pointer
		}
		return f, nil
	}
	return nil, fmt.Errorf("%w: scheme %q", fs.ErrInvalid, t.scheme)
}
