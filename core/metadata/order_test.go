package metadata

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func names(states []NamedState) []string {
	list := make([]string, len(states))
	for i := range states {
		list[i] = states[i].Name
	}
	return list
}

// All handles that a real Flink wrote have the order of its HashMap: putting them into that order changes nothing.
func TestFlinkWritesStatesInTheOrderOfAHashMap(t *testing.T) {
	checked := 0
	for _, g := range ownGolden(t) {
		if g.kind != "public" && g.kind != "jobs" {
			continue
		}
		c, err := Parse(g.data(t), "")
		require.NoError(t, err)
		for _, o := range c.Operators {
			for _, s := range o.Subtasks {
				if s.State == nil || s.State.ManagedOperator == nil || len(s.State.ManagedOperator.States) < 2 {
					continue
				}
				states := s.State.ManagedOperator.States
				want := names(states)
				require.Equal(t, want, names(NewOperatorHandle(states, EmptySegment{}).States), g.name)
				checked++
			}
		}
	}
	require.Greater(t, checked, 50)
}

// The orders on the right are those in which a java.util.HashMap of OpenJDK 17, made for so many entries, yields the keys on the
// left when they are put in as they stand.
func TestStatesAreSortedByBucket(t *testing.T) {
	for in, want := range map[string]string{
		"":                "",
		"b":               "b",
		"b a":             "a b",
		"d c b a":         "a b c d",
		"BB Aa x":         "BB Aa x", // all in one bucket
		"Aa x BB":         "Aa x BB",
		"h g f e d c b a": "a b c d e f g h",
		"state-0 state-1 state-2 state-3 state-4 state-5 state-6 state-7 state-8 state-9 state-10 state-11 café 😀 文": "文 state-10 " +
			"state-11 café state-7 state-6 state-5 state-4 state-9 state-8 😀 state-3 state-2 state-1 state-0",
		"zeta broadcast list-state union_default_ _default_ Aa BB": "zeta broadcast Aa BB _default_ union_default_ list-state",
	} {
		var states []NamedState
		for name := range strings.FieldsSeq(in) {
			states = append(states, NamedState{Name: name})
		}
		sortLikeHashMap(states)
		require.Equal(t, want, strings.Join(names(states), " "))
	}
}

func TestCapacityLeavesAQuarterFree(t *testing.T) {
	for n, want := range map[int]uint32{0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 6: 8, 7: 16, 12: 16, 13: 32, 24: 32, 25: 64, 48: 64, 49: 128} {
		require.Equal(t, want, hashMapCapacity(n), "%d entries", n)
	}
}
