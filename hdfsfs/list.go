package hdfsfs

import (
	"container/heap"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// List implements core.FileSystem. The NameNode is asked for a page at a time, for the directory by its inode, so that pages
// of two directories that follow each other under a name are never mixed. Only names that are not ASCII may have to be held
// back, because the NameNode has them in another order.
func (f *FS) List(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
	return func(yield func(core.FileInfo, error) bool) {
		err := core.CheckName("list", f.opts.Base, dir)
		if err == nil {
			err = core.PathError("list", dir, f.list(ctx, dir, func(s status) bool { return yield(s.info(s.name), nil) }))
		}
		if err != nil {
			yield(core.FileInfo{}, err)
		}
	}
}

// list calls yield until it returns false.
func (f *FS) list(ctx context.Context, dir string, yield func(status) bool) error {
	listing, err := call(ctx, f, func() (clientListing, error) { return f.openDir(ctx, dir) }, clientListing.close)
	if err != nil {
		return err
	}
	defer listing.close()
	o := ordered{yield: yield}
	for more := true; more; {
		var page []status
		page, more, err = f.nextPage(ctx, listing)
		if err != nil {
			return err
		}
		for _, s := range page {
			if !o.add(s) {
				return nil
			}
		}
	}
	o.flush()
	return nil
}

func (f *FS) openDir(ctx context.Context, dir string) (clientListing, error) {
	var streams streamClient
	switch c := f.client.(type) {
	case directClient:
		return c.listDirect(dir), nil
	case streamClient:
		streams = c
	}
	s, err := f.stat(ctx, dir)
	if err != nil {
		return nil, err
	}
	if !s.dir {
		return nil, fmt.Errorf("%w: it is %s", fs.ErrInvalid, s.kind())
	}
	var listing clientListing
	err = f.retryAnyway(ctx, func() (err error) {
		listing, err = streams.list(ctx, s)
		return err
	})
	return listing, err
}

type listPage struct {
	entries []status
	more    bool
}

func (f *FS) nextPage(ctx context.Context, listing clientListing) ([]status, bool, error) {
	p, err := call(ctx, f, func() (listPage, error) {
		var p listPage
		err := f.retryAnyway(ctx, func() (err error) {
			p.entries, p.more, err = listing.next(ctx)
			return err
		})
		return p, err
	}, nil)
	return p.entries, p.more, err
}

// ordered puts entries that come in the order of the NameNode, which compares names as signed bytes, into that of bytes. In
// the former a name that is not ASCII comes before those that it is behind in the latter, so it is held back. A name that is
// ASCII is less than all that come after it in both: at the first difference the later name has a greater byte, and one
// that is not ASCII would be negative.
type ordered struct {
	yield func(status) bool
	held  names
	ended bool
}

// add returns false when nobody wants any more.
func (o *ordered) add(s status) bool {
	if strings.ContainsFunc(s.name, func(r rune) bool { return r >= 0x80 }) {
		heap.Push(&o.held, s)
		return true
	}
	for !o.ended && len(o.held) > 0 && o.held[0].name < s.name {
		o.pop()
	}
	if !o.ended {
		o.ended = !o.yield(s)
	}
	return !o.ended
}

func (o *ordered) flush() {
	for !o.ended && len(o.held) > 0 {
		o.pop()
	}
}

func (o *ordered) pop() {
	s, _ := heap.Pop(&o.held).(status) // there are no others
	o.ended = !o.yield(s)
}

// names is a heap.
type names []status

func (n names) Len() int           { return len(n) }
func (n names) Less(i, j int) bool { return n[i].name < n[j].name }
func (n names) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *names) Push(x any)        { *n = append(*n, x.(status)) } //nolint:forcetypeassert // of this file only

func (n *names) Pop() any {
	last := len(*n) - 1
	s := (*n)[last]
	*n = (*n)[:last]
	return s
}
