package coordinator

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// failed is a checkpoint that was aborted. Its tasks may be late with their acknowledgements.
type failed struct {
	id        int64
	inherited []core.Object
}

// maxFailed is how many of them are remembered. What tasks write for older ones is left to the next sweep.
const maxFailed = 16

func (c *Coordinator) rememberFailed(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, failed{id: p.trigger.CheckpointID, inherited: p.inherited})
	c.failed = slices.Clone(c.failed[max(0, len(c.failed)-maxFailed):])
}

// failedBefore returns the aborted checkpoint with an id, if it is remembered.
func (c *Coordinator) failedBefore(id int64) (failed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.failed, func(f failed) bool { return f.id == id })
	if i < 0 {
		return failed{}, false
	}
	return c.failed[i], true
}

// discarding is what tasks wrote for a checkpoint in vain.
type discarding struct {
	id      int64
	objects []core.Object // discard may change it
	// inherited are the objects of the checkpoint's base. They were not written for it, and others may need them.
	inherited []core.Object
	// places to delete in.
	places []core.Place
}

// discardParallelism is how many files are deleted at the same time.
const discardParallelism = 8

// discard deletes files that nobody can need: no complete and no undecided checkpoint refers to them, and no successor has
// taken over.
func (c *Coordinator) discard(ctx context.Context, d discarding) {
	if len(d.objects) == 0 || c.fence() != nil {
		return
	}
	location, err := c.opts.Storage.ResolveLocation(ctx, d.id, nil)
	if err != nil {
		return // there is no such checkpoint, and so no file of it
	}
	objects := slices.DeleteFunc(d.objects, func(o core.Object) bool {
		return isReference(o) || !slices.Contains(d.places, location.Place(o.Path))
	})
	unneeded := c.unneeded(objects, d.inherited)
	if len(unneeded) == 0 || !c.holdsClaim(ctx, d.id) {
		return
	}
	next := make(chan string)
	var workers sync.WaitGroup
	for range min(discardParallelism, len(unneeded)) {
		workers.Go(func() {
			for path := range next {
				if err := core.Discard(ctx, c.opts.Storage.Opener(), &core.FileHandle{Path: path}); err != nil {
					c.leftBehind(d.id, "a state file that no checkpoint needs could not be deleted; the next sweep finds it", err)
				}
			}
		})
	}
	for _, path := range unneeded {
		next <- path
	}
	close(next)
	workers.Wait()
}

// holdsClaim looks at the claim before something is deleted: what nobody needs here, a successor may need.
func (c *Coordinator) holdsClaim(ctx context.Context, id int64) bool {
	err := c.noteFence(c.owner.Check(ctx))
	if err != nil && !errors.Is(err, core.ErrFenced) {
		c.leftBehind(id, "state files that no checkpoint needs are not deleted, since the claim cannot be looked at; the next sweep finds them", err)
	}
	return err == nil
}

// unneeded returns the paths of those objects that nobody can need.
func (c *Coordinator) unneeded(objects, inherited []core.Object) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blind {
		return nil
	}
	return c.registry.unneeded(objects, inherited)
}

// isReference reports whether placeholders are all that an acknowledgement has of an object: then it was not written for it.
func isReference(o core.Object) bool {
	return o.Size == -1 && !slices.ContainsFunc(o.Segments, func(s core.Segment) bool { return s.Size >= 0 })
}
