package rpc

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc/rpctest"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// retryCache executes each call once, as a NameNode does.
type retryCache struct {
	mu       sync.Mutex
	random   *rand.Rand
	executed map[string]int // by path
	results  map[string]*wire.GetFileInfoResponse
	repeated int
}

func (r *retryCache) execute(c *rpctest.Call) (result *wire.GetFileInfoResponse, luck int) {
	m := &wire.GetFileInfoRequest{}
	if err := c.Decode(m); err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprintf("%x %d", c.ClientID, c.ID)
	result, known := r.results[key]
	if known {
		r.repeated++
	} else {
		r.executed[m.GetSrc()]++
		result = echoAnswer(m.GetSrc())
		r.results[key] = result
	}
	return result, r.random.IntN(100)
}

// A server that resets, ends and tears connections, that forgets answers and is late with others, does not make a call be executed
// twice, or not at all, or be given the answer of another.
func TestEveryCallIsExecutedOnceWhateverTheConnectionDoes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	cache := &retryCache{random: rand.New(rand.NewPCG(seed, 0)), executed: map[string]int{}, results: map[string]*wire.GetFileInfoResponse{}}
	server := rpctest.Start(t, func(c *rpctest.Call) {
		result, luck := cache.execute(c)
		switch {
		case luck < 1:
			c.Drop()
		case luck < 2:
			c.Reset()
		case luck < 3:
			c.Raw([]byte{0, 0, 1})
			c.Drop()
		case luck < 4: // is never answered
		case luck < 10:
			time.Sleep(time.Duration(luck) * time.Millisecond)
			c.Reply(result)
		case luck < 12:
			c.Throw("org.apache.hadoop.ipc.RetriableException", "too busy")
		default:
			c.Reply(result)
		}
	})
	c := newClient(t, Options{CallTimeout: 150 * time.Millisecond, Plan: func(f Failure) Decision {
		if f.Cause == Refused {
			return Decision{Action: GiveUp}
		}
		return Decision{Repeat, time.Millisecond}
	}}, server)
	const callers, each = 40, 25
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				want := fmt.Sprintf("/%d/%d", caller, i)
				if got, err := callEcho(t.Context(), c, want); err != nil || got != want {
					t.Errorf("%s: %q, %v", want, got, err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, cache.executed, callers*each)
	for path, n := range cache.executed {
		require.Equal(t, 1, n, path)
	}
	require.Positive(t, cache.repeated, "nothing was lost: the test shows nothing")
}
