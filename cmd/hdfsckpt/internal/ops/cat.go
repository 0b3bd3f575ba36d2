package ops

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// CatOptions choose what is written.
type CatOptions struct {
	// Object is the qualified path of a file, or its end from some slash on.
	Object string
	// Segment is where the segment of a merged file begins; negative: there is only one.
	Segment int64
	PathMap PathMap
}

// Cat writes the bytes of one file, or segment, of a checkpoint. Where checksums are recorded, no byte of a chunk is written before
// the chunk was found right.
func Cat(ctx context.Context, open core.Opener, pointer string, opts CatOptions, w io.Writer) error {
	object, err := chooseObject(ctx, open, pointer, opts)
	if err != nil {
		return err
	}
	r, err := core.OpenObject(ctx, open, object)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	part := r
	if len(object.Segments) > 0 {
		if part, err = r.Segment(object.Segments[0]); err != nil {
			return err
		}
	}
	_, err = io.CopyBuffer(onlyWriter{w}, part, make([]byte, core.ChecksumChunk))
	return err
}

// onlyWriter keeps the buffer in use.
type onlyWriter struct{ io.Writer }

// chooseObject finds the one file that is meant; of a merged one it has only the segment that is meant.
func chooseObject(ctx context.Context, open core.Opener, pointer string, opts CatOptions) (core.Object, error) {
	s, err := TakeSurvey(ctx, open, pointer, metadata.InventoryOptions{Where: opts.PathMap.Map})
	defer s.Release()
	if err != nil {
		return core.Object{}, err
	}
	var found []core.Object
	for file, err := range s.All() {
		if err != nil {
			return core.Object{}, s.located(err)
		}
		if file.Path != opts.Object && !strings.HasSuffix(file.Path, "/"+opts.Object) {
			continue
		}
		at := slices.IndexFunc(found, func(o core.Object) bool { return o.Path == file.Path })
		if at < 0 {
			found = append(found, file.Object)
		} else {
			found[at].Segments = append(found[at].Segments, file.Segments...)
		}
	}
	switch {
	case len(found) == 0:
		return core.Object{}, &report.Problem{
			Kind: report.None, Path: s.Pointer, Message: fmt.Sprintf("%s needs no file %s", s.Pointer, opts.Object),
			Hint: "inspect --subtasks shows what it needs",
		}
	case len(found) > 1:
		return core.Object{}, report.UsageProblem(fmt.Sprintf("%s could be %s", opts.Object, some(len(found), func(i int) string { return found[i].Path })), "give more of the path")
	case found[0].Directory:
		return core.Object{}, report.UsageProblem(found[0].Path+" is a directory", "inspect --subtasks shows the files that are needed of it")
	}
	return chooseSegment(found[0], opts.Segment)
}

// chooseSegment leaves of an object the segment at the offset.
func chooseSegment(object core.Object, offset int64) (core.Object, error) {
	segments := object.Segments
	slices.SortFunc(segments, func(a, b core.Segment) int { return int(min(1, max(-1, a.Offset-b.Offset))) })
	offsets := func(i int) string { return fmt.Sprint(segments[i].Offset) }
	switch at := slices.IndexFunc(segments, func(s core.Segment) bool { return s.Offset == offset }); {
	case len(segments) == 0 && offset < 0, len(segments) == 1 && offset < 0:
		return object, nil
	case len(segments) == 0:
		return core.Object{}, report.UsageProblem(object.Path+" has no segments: all of it is needed", "leave --segment out")
	case offset < 0:
		return core.Object{}, report.UsageProblem(fmt.Sprintf("%s has %d segments, at %s", object.Path, len(segments), some(len(segments), offsets)), "choose one with --segment")
	case at < 0:
		return core.Object{}, report.UsageProblem(fmt.Sprintf("%s has no segment at %d but at %s", object.Path, offset, some(len(segments), offsets)), "")
	default:
		object.Segments = segments[at : at+1]
		return object, nil
	}
}

// mostNamed is how many of the possible choices a message names.
const mostNamed = 10

func some(n int, name func(int) string) string {
	var names []string
	for i := range min(n, mostNamed) {
		names = append(names, name(i))
	}
	if n > mostNamed {
		names = append(names, fmt.Sprintf("%d more", n-mostNamed))
	}
	return strings.Join(names, ", ")
}
