package statestore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// A job counts words. Each batch makes one version out of the one before.
func ExampleOpen() {
	ctx := context.Background()
	fsys := memfs.New(memfs.Options{}) // localfs or hdfsfs in a real job
	store, err := statestore.Open(ctx, fsys, "/checkpoint/state/0/0", statestore.Options{})
	if err != nil {
		panic(err)
	}
	for batch, word := range []string{"to", "be", "or", "be"} {
		tx, err := store.Begin(ctx, int64(batch))
		if err != nil {
			panic(err)
		}
		count, _, err := tx.Get([]byte(word))
		if err != nil {
			panic(err)
		}
		if err := tx.Put([]byte(word), append(count, 'x')); err != nil {
			panic(err)
		}
		if _, err := tx.Commit(ctx); err != nil {
			panic(err)
		}
	}
	view, err := store.Load(ctx, 4)
	if err != nil {
		panic(err)
	}
	for entry, err := range view.All() {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %s\n", entry.Key, entry.Value)
	}
	if err := errors.Join(view.Close(), store.Close()); err != nil {
		panic(err)
	}
	// Output:
	// be xx
	// or x
	// to x
}

// A batch is done once more after a restart. With the same result nothing happens; with another it has to be asked for.
func ExampleStore_Rollback() {
	ctx := context.Background()
	store, err := statestore.Open(ctx, memfs.New(memfs.Options{}), "/checkpoint/state/0/0", statestore.Options{})
	if err != nil {
		panic(err)
	}
	batch := func(base int64, value string) error {
		tx, err := store.Begin(ctx, base)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Abort() }() // after Commit it does nothing
		if err := tx.Put([]byte("key"), []byte(value)); err != nil {
			return err
		}
		_, err = tx.Commit(ctx)
		return err
	}
	fmt.Println(batch(0, "first"))
	fmt.Println(batch(0, "first"))
	var conflict *statestore.ConflictError
	fmt.Println(errors.As(batch(0, "second"), &conflict))
	fmt.Println(store.Rollback(ctx, 0))
	fmt.Println(batch(0, "second"))
	// Output:
	// <nil>
	// <nil>
	// true
	// <nil>
	// <nil>
}

// The stores of all partitions of a job share a budget and are maintained in the background.
func ExampleProvider() {
	ctx := context.Background()
	provider, err := statestore.NewProvider(memfs.New(memfs.Options{}), "/checkpoint/state", statestore.Options{
		Budget:  statestore.NewBudget(statestore.BudgetOptions{Limit: 1 << 30}),
		Cleanup: statestore.CleanupPolicy{Retain: 10},
	})
	if err != nil {
		panic(err)
	}
	if _, err := provider.StartMaintenance(statestore.MaintenanceOptions{}); err != nil {
		panic(err)
	}
	for partition := range int64(2) {
		store, err := provider.Open(ctx, statestore.StoreID{Operator: 0, Partition: partition, Name: "left-keyToNumValues"})
		if err != nil {
			panic(err)
		}
		fmt.Println(store.Dir())
	}
	if err := provider.Close(); err != nil {
		panic(err)
	}
	// Output:
	// /checkpoint/state/0/0/left-keyToNumValues
	// /checkpoint/state/0/1/left-keyToNumValues
}
