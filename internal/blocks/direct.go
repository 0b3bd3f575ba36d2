package blocks

import "io/fs"

// direct runs something on the caller's goroutine, with the caller's memory.
func (q *Queue) direct(p []byte, do func(p []byte) error) error {
	if !q.opts.Gate.Enter() {
		q.fail(fs.ErrClosed)
		return fs.ErrClosed
	}
	defer q.opts.Gate.Leave()
	err := do(p)
	if err == nil {
		return nil
	}
	q.fail(err)
	if q.is(discarded) {
		return fs.ErrClosed // whatever Abort has made of it
	}
	return err
}
