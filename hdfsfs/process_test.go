package hdfsfs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// asRacer makes the test binary a process that does what it reads, on a cluster that the variable describes.
const asRacer = "HDFSCKPT_HDFSFS_RACER"

// racerSetUp says what a racer works on.
type racerSetUp struct {
	NameNode, ConfDir, User string
	BlockSize               int64
}

// order is something that several processes do at once.
type order struct {
	Do       string // create, rename or renamedir; or hold, which leaves a file open after a Sync, and finish
	Old, New string
	Content  string
}

// reply is what became of it.
type reply struct {
	Won   bool
	Exist bool // fs.ErrExist
	Gone  bool // fs.ErrNotExist
	Err   string
}

func TestMain(m *testing.M) {
	setUp := os.Getenv(asRacer)
	if setUp == "" {
		m.Run() // its result is the status
		return
	}
	if err := beRacer(setUp); err != nil {
		fmt.Fprintln(os.Stderr, err) // whoever reads the output misses it
	}
}

func beRacer(text string) error {
	var setUp racerSetUp
	if err := json.Unmarshal([]byte(text), &setUp); err != nil {
		return err
	}
	ctx := context.Background()
	f, err := Open(ctx, setUp.NameNode, Options{ConfDir: setUp.ConfDir, User: setUp.User, BlockSize: setUp.BlockSize})
	if err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var open core.Writer
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return f.Close()
		} else if err != nil {
			return err
		}
		err := o.run(ctx, f, &open)
		r := reply{Won: err == nil, Exist: errors.Is(err, fs.ErrExist), Gone: errors.Is(err, fs.ErrNotExist)}
		if err != nil {
			r.Err = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

func (o order) run(ctx context.Context, f *FS, open *core.Writer) (err error) {
	switch o.Do {
	case "create":
		return put(ctx, f, o.New, []byte(o.Content))
	case "hold":
		if *open, err = f.Create(ctx, o.New, core.CreateOptions{}); err != nil {
			return err
		}
		if _, err = (*open).Write([]byte(o.Content)); err != nil {
			return err
		}
		return (*open).Sync()
	case "finish":
		if _, err = (*open).Write([]byte(o.Content)); err != nil {
			return err
		}
		return (*open).Close()
	}
	return f.Rename(ctx, o.Old, o.New, core.RenameNoReplace)
}

func put(ctx context.Context, f core.FileSystem, name string, content []byte) error {
	w, err := f.Create(ctx, name, core.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err = w.Write(content); err == nil {
		err = w.Close()
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

func get(ctx context.Context, f core.FileSystem, name string) ([]byte, error) {
	r, err := f.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// racer is such a process.
type racer struct {
	in      *json.Encoder
	out     *json.Decoder
	process *os.Process
	killed  bool
}

// do has it carry out an order.
func (r *racer) do(t *testing.T, o order) reply {
	t.Helper()
	var answer reply
	require.NoError(t, r.in.Encode(o))
	require.NoError(t, r.out.Decode(&answer))
	return answer
}

// kill ends it by SIGKILL.
func (r *racer) kill(t *testing.T) {
	t.Helper()
	r.killed = true
	require.NoError(t, r.process.Kill())
}

func startRacer(t *testing.T, s racerSetUp) *racer {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	cmd := exec.Command(self) // it ends with its input
	cmd.Env = append(os.Environ(), asRacer+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r := &racer{in: json.NewEncoder(in), out: json.NewDecoder(bufio.NewReader(out)), process: cmd.Process}
	t.Cleanup(func() {
		_ = in.Close()
		err := cmd.Wait()
		require.True(t, err == nil || r.killed, "%v", err)
	})
	return r
}

// race gives each racer its order at once and returns their replies.
func race(t *testing.T, racers []*racer, orderOf func(i int) order) []reply {
	t.Helper()
	replies, errs := make([]reply, len(racers)), make([]error, len(racers))
	start := make(chan struct{})
	var done sync.WaitGroup
	for i, r := range racers {
		done.Go(func() {
			<-start
			if errs[i] = r.in.Encode(orderOf(i)); errs[i] == nil {
				errs[i] = r.out.Decode(&replies[i])
			}
		})
	}
	close(start)
	done.Wait()
	require.NoError(t, errors.Join(errs...))
	return replies
}

// requireWinner returns the one that has won; the others must have been told that the name is taken.
func requireWinner(t *testing.T, replies []reply) int {
	t.Helper()
	winner := -1
	for i, r := range replies {
		if r.Won {
			require.Equal(t, -1, winner, "two winners: %+v", replies)
			winner = i
			continue
		}
		require.True(t, r.Exist, "a loser was not told that the name is taken: %+v", replies)
	}
	require.NotEqual(t, -1, winner, "no winner: %+v", replies)
	return winner
}

func TestOneOfSeveralProcessesWinsAName(t *testing.T) {
	const processes, rounds = 4, 50
	c := testenv.Require(t, testenv.Options{})
	dir := c.TempDir(t)
	f := openOn(t, c, optionsFor(c, "alice"))
	racers := make([]*racer, processes)
	for i := range racers {
		racers[i] = startRacer(t, racerSetUp{c.NameNode(), c.ConfDir(), "alice", 0})
	}
	name := func(round int, parts ...any) string {
		return dir + "/" + strings.ReplaceAll(strings.TrimSpace(fmt.Sprintln(append([]any{round}, parts...)...)), " ", "-")
	}
	content := func(round, i int) string { return fmt.Sprintf("round %d, process %d", round, i) }

	t.Run("Create", func(t *testing.T) {
		for round := range rounds {
			target := name(round, "created")
			winner := requireWinner(t, race(t, racers, func(i int) order {
				return order{Do: "create", New: target, Content: content(round, i)}
			}))
			got, err := get(t.Context(), f, target)
			require.NoError(t, err)
			require.Equal(t, content(round, winner), string(got))
		}
	})
	t.Run("Rename of files, and a Create", func(t *testing.T) {
		for round := range rounds {
			target := name(round, "renamed")
			for i := range processes - 1 {
				require.NoError(t, put(t.Context(), f, name(round, "source", i), []byte(content(round, i))))
			}
			winner := requireWinner(t, race(t, racers, func(i int) order {
				if i == processes-1 {
					return order{Do: "create", New: target, Content: content(round, i)}
				}
				return order{Do: "rename", Old: name(round, "source", i), New: target}
			}))
			got, err := get(t.Context(), f, target)
			require.NoError(t, err)
			require.Equal(t, content(round, winner), string(got))
			for i := range processes - 1 {
				_, err := f.Stat(t.Context(), name(round, "source", i))
				require.Equal(t, i == winner, errors.Is(err, fs.ErrNotExist), "%d: %v", i, err)
			}
		}
	})
	t.Run("Rename of directories", func(t *testing.T) {
		for round := range rounds {
			target := name(round, "moved")
			for i := range processes {
				require.NoError(t, f.MkdirAll(t.Context(), name(round, "dir", i)+fmt.Sprintf("/of-%d", i)))
			}
			winner := requireWinner(t, race(t, racers, func(i int) order {
				return order{Do: "rename", Old: name(round, "dir", i), New: target}
			}))
			_, err := f.Stat(t.Context(), fmt.Sprintf("%s/of-%d", target, winner))
			require.NoError(t, err)
		}
	})
}
