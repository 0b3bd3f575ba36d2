package faultfs_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

// decide asks an injector about calls of alternating Create and Write, and returns the indexes at which it injects.
func decide(inject faultfs.Injector, n int) []int {
	var hit []int
	for i := range n {
		op := []faultfs.Op{faultfs.OpCreate, faultfs.OpWrite}[i%2]
		if !inject(faultfs.Call{Index: i, Op: op}).IsZero() {
			hit = append(hit, i)
		}
	}
	return hit
}

func TestInjectorsChooseTheirCalls(t *testing.T) {
	fault := faultfs.Fault{Err: errors.New("no")}
	writes := faultfs.OnOp(faultfs.OpWrite, fault)
	for _, test := range []struct {
		name   string
		inject faultfs.Injector
		want   []int
	}{
		{"Nth", faultfs.Nth(3, fault), []int{3}},
		{"Nth beyond the end", faultfs.Nth(30, fault), nil},
		{"From", faultfs.From(6, fault), []int{6, 7, 8, 9}},
		{"OnOp", writes, []int{1, 3, 5, 7, 9}},
		{"Match", faultfs.Match(func(c faultfs.Call) bool { return c.Index%4 == 0 }, fault), []int{0, 4, 8}},
		{"Once", faultfs.Once(writes), []int{1}},
		{"Window", faultfs.Window(1, 2, writes), []int{3, 5}},
		{"Any", faultfs.Any(faultfs.Nth(0, fault), faultfs.From(8, fault), faultfs.Nth(2, fault)), []int{0, 2, 8, 9}},
		{"Any of none", faultfs.Any(), nil},
		{"no fault", faultfs.Nth(3, faultfs.Fault{}), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, decide(test.inject, 10))
		})
	}
}
