package cli

import (
	"io"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
)

// connect opens the file systems of URLs when they are first needed.
func connect() (core.Opener, io.Closer, error) {
	opener, err := fsurl.NewOpener(fsurl.Options{})
	if err != nil {
		return nil, nil, err
	}
	return opener.Open, opener, nil
}
