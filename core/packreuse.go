package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// packUse is how a file of shared segments is used.
type packUse struct {
	size int64 // of the file
	live int64 // bytes of the segments that are still needed
}

// planRewrite returns the files whose segments are to be written anew so that no file is longer than amplification times what
// is needed of it. What is copied is then less than the file's length divided by amplification, and the file goes when no
// older checkpoint needs it: each byte that is given up pays for one that is copied.
func planRewrite(files map[string]packUse, amplification float64) map[string]bool {
	rewrite := map[string]bool{}
	for path, use := range files {
		if float64(use.live)*amplification < float64(use.size) {
			rewrite[path] = true
		}
	}
	return rewrite
}

// segmentKey tells segments apart.
type segmentKey struct {
	path         string
	offset, size int64
}

// Reuse returns the handles by which this checkpoint goes on using shared states of the checkpoint that its trigger names as
// base, in the order given. Most are the given ones. The segments of a file of which too little is still needed are copied into
// this pack instead, verified on the way, so that no file of shared segments is longer than PackOptions.MaxAmplification times
// what this checkpoint needs of it. For a savepoint, which owns all its files, every segment is copied.
//
// Call it once for each pack, with everything that the states of the worker go on using: what is left out counts as given up.
// Handles that are no segments are returned as they are. The error is fs.ErrInvalid for an exclusive segment, which belongs to
// one checkpoint, and ErrCorrupt for one whose bytes are damaged. For a file that another process has written, the storage is
// asked once for its length.
func (p *Pack) Reuse(ctx context.Context, handles []StreamHandle) ([]StreamHandle, error) {
	files, err := p.usage(ctx, handles)
	if err != nil {
		return nil, err
	}
	rewrite := planRewrite(files, p.packer.opts.MaxAmplification)
	copies := map[segmentKey]StreamHandle{}
	result := make([]StreamHandle, len(handles))
	for i, handle := range handles {
		h, ok := handle.(*SegmentHandle)
		if !ok || p.Packs() && !rewrite[h.Path] {
			result[i] = handle
			continue
		}
		key := segmentKey{h.Path, h.Offset, h.Size}
		if copies[key] == nil {
			if copies[key], err = p.copySegment(ctx, h); err != nil {
				return nil, fmt.Errorf("cannot copy a segment that is still needed: %w", err)
			}
		}
		result[i] = copies[key]
	}
	if p.Packs() {
		p.packer.forgetSizes(files)
	}
	return result, nil
}

// usage finds out how the files of the segments are used.
func (p *Pack) usage(ctx context.Context, handles []StreamHandle) (map[string]packUse, error) {
	files := map[string]packUse{}
	seen := map[segmentKey]bool{}
	for _, handle := range handles {
		h, ok := handle.(*SegmentHandle)
		if !ok {
			continue
		}
		key := segmentKey{h.Path, h.Offset, h.Size}
		switch {
		case h.Scope != Shared:
			return nil, PathError("reuse", h.Path, fmt.Errorf("%w: the segment at %d is exclusive", fs.ErrInvalid, h.Offset))
		case h.Path == "" || h.Offset < 0 || h.Size < 0:
			return nil, PathError("reuse", h.Path, fmt.Errorf("%w: the segment is not of a committed pack", fs.ErrInvalid))
		case seen[key]:
			continue
		}
		seen[key] = true
		use := files[h.Path]
		use.live += h.Size
		files[h.Path] = use
	}
	if !p.Packs() {
		return files, nil
	}
	for path, use := range files {
		var err error
		if use.size, err = p.packer.sizeOf(ctx, path); err != nil {
			return nil, err
		}
		files[path] = use
	}
	return files, nil
}

// sizeOf is the length of a file of shared segments.
func (p *Packer) sizeOf(ctx context.Context, qualified string) (int64, error) {
	p.mu.Lock()
	size, known := p.sizes[qualified]
	p.mu.Unlock()
	if known {
		return size, nil
	}
	fsys, name, err := p.storage.opts.Opener(ctx, qualified)
	if err != nil {
		return 0, err
	}
	info, err := fsys.Stat(ctx, name)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes[qualified] = info.Size
	return info.Size, nil
}

// maxSizes is how many lengths are remembered beyond those in use.
const maxSizes = 1 << 10

// forgetSizes drops lengths of files that are not in use, if they have become many. Those of packs that are still under way are
// asked for again if they are needed.
func (p *Packer) forgetSizes(used map[string]packUse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sizes) <= len(used)+maxSizes {
		return
	}
	for path := range p.sizes {
		if _, needed := used[path]; !needed {
			delete(p.sizes, path)
		}
	}
}

// copySegment writes the bytes of a segment anew.
func (p *Pack) copySegment(ctx context.Context, h *SegmentHandle) (handle StreamHandle, err error) {
	r, err := OpenState(ctx, p.packer.storage.opts.Opener, h)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	stream := p.CreateStateStream(ctx, Shared)
	defer func() { err = errors.Join(err, stream.Close()) }()
	if _, err := io.Copy(stream, r); err != nil {
		return nil, err
	}
	return stream.CloseAndGetHandle()
}
