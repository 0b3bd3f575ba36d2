package namenode

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// ListPage returns the entries of a directory whose names are greater than after, in the order of [CompareNames], as many as the NameNode gives at
// once, and whether there are more. After is empty for the first page, then the Path of the last entry. A missing directory is
// fs.ErrNotExist, a file fs.ErrInvalid.
func (c *Client) ListPage(ctx context.Context, dir string, after []byte) (page []*wire.HdfsFileStatus, more bool, err error) {
	if after == nil {
		after = []byte{}
	}
	var response wire.GetListingResponse
	request := &wire.GetListingRequest{Src: &dir, StartAfter: after, NeedLocation: proto.Bool(false)}
	if err := c.call(ctx, "getListing", request, &response); err != nil {
		return nil, false, err
	}
	listing := response.GetDirList()
	if listing == nil {
		return nil, false, notExist("getListing", dir)
	}
	page, more = listing.GetPartialListing(), listing.GetRemainingEntries() > 0
	return page, more, checkPage(dir, after, page, more)
}

// CompareNames compares as a NameNode does, by bytes with a sign: what is not ASCII comes first.
func CompareNames(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(int8(a[i]), int8(b[i])) //nolint:gosec // the sign is what it is about
		}
	}
	return cmp.Compare(len(a), len(b))
}

// checkPage refuses pages with which a listing would be wrong or would never end.
func checkPage(dir string, after []byte, page []*wire.HdfsFileStatus, more bool) error {
	if len(page) == 1 && len(page[0].GetPath()) == 0 && len(after) == 0 {
		return fmt.Errorf("getListing: %s: %w: not a directory", dir, fs.ErrInvalid)
	}
	if more && len(page) == 0 {
		return fmt.Errorf("getListing: %s: %w: an empty page before the end", dir, wire.ErrMalformed)
	}
	for _, entry := range page {
		if CompareNames(entry.GetPath(), after) <= 0 {
			return fmt.Errorf("getListing: %s: %w: %q after %q", dir, wire.ErrMalformed, entry.GetPath(), after)
		}
		after = entry.GetPath()
	}
	return nil
}

// List yields the entries of a directory in the order of [CompareNames], page by page. Entries that come or go meanwhile may be there
// or not. After an error it yields nothing more.
func (c *Client) List(ctx context.Context, dir string) iter.Seq2[*wire.HdfsFileStatus, error] {
	return func(yield func(*wire.HdfsFileStatus, error) bool) {
		var after []byte
		for more := true; more; {
			var page []*wire.HdfsFileStatus
			var err error
			if page, more, err = c.ListPage(ctx, dir, after); err != nil {
				yield(nil, err)
				return
			}
			for _, entry := range page {
				if !yield(entry, nil) {
					return
				}
				after = entry.GetPath()
			}
		}
	}
}
