package counts_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/counts"
)

func groupsOf(t *testing.T, subtask, parallelism int) metadata.KeyGroupRange {
	t.Helper()
	groups, err := metadata.KeyGroupsOfSubtask(subtask, parallelism, counts.MaxParallelism)
	require.NoError(t, err)
	return groups
}

func collect(c *counts.Counts, into map[string]uint64) {
	c.All(func(word string, count uint64) { into[word] += count })
}

func TestWordsAreCountedOnceWhateverTheNumberOfWorkers(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 7, 128} {
		counted := map[string]uint64{}
		for worker := range workers {
			c := counts.New(groupsOf(t, worker, workers))
			for i := range 1000 {
				c.Add(fmt.Appendf(nil, "word%d", i%100))
			}
			collect(c, counted)
		}
		require.Len(t, counted, 100)
		for word, count := range counted {
			require.EqualValues(t, 10, count, "%s with %d workers", word, workers)
		}
	}
}

func TestSavedCountsCanBeSpreadOverAnotherNumberOfWorkers(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	expected := map[string]uint64{}
	const before, after = 3, 5
	saved := map[int][]byte{} // by key group
	for worker := range before {
		groups := groupsOf(t, worker, before)
		c := counts.New(groups)
		for range 2000 {
			c.Add(fmt.Appendf(nil, "w%d", random.IntN(500)))
		}
		collect(c, expected)
		var file bytes.Buffer
		offsets, err := c.Save(&file)
		require.NoError(t, err)
		require.Len(t, offsets, int(groups.Count))
		for i, offset := range offsets {
			saved[int(groups.Start)+i] = file.Bytes()[offset:]
		}
	}
	restored := map[string]uint64{}
	for worker := range after {
		groups := groupsOf(t, worker, after)
		c := counts.New(groups)
		for group := int(groups.Start); group < groups.End(); group++ {
			require.NoError(t, c.ReadGroup(bytes.NewReader(saved[group]), group))
		}
		collect(c, restored)
	}
	require.Equal(t, expected, restored)
}

func TestACutOffGroupIsAnError(t *testing.T) {
	c := counts.New(metadata.KeyGroupRange{Start: 0, Count: counts.MaxParallelism})
	c.Add([]byte("word"))
	var file bytes.Buffer
	_, err := c.Save(&file)
	require.NoError(t, err)
	group := metadata.KeyGroupOfBytes([]byte("word"), counts.MaxParallelism)
	whole := file.Bytes()[group:]
	for length := range 7 {
		fresh := counts.New(metadata.KeyGroupRange{Start: 0, Count: counts.MaxParallelism})
		require.Error(t, fresh.ReadGroup(bytes.NewReader(whole[:length]), group), "%d bytes", length)
	}
	require.NoError(t, c.ReadGroup(bytes.NewReader(whole[:7]), group))
}
