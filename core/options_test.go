package core_test

import (
	"context"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestOptionsAreValidInEveryDocumentedForm(t *testing.T) {
	for name, opts := range map[string]core.Options{
		"zero":                  {},
		"never inline":          {InlineThreshold: core.NeverInline},
		"largest threshold":     {InlineThreshold: core.MaxInlineThreshold},
		"buffer below":          {InlineThreshold: 1000, WriteBuffer: 1},
		"strongest durability":  {Durability: core.Synced},
		"savepoints on another": {SavepointDir: "hdfs://ns1/save"},
		"savepoints here":       {SavepointDir: "/save"},
	} {
		require.NoError(t, opts.Validate(), name)
	}
}

func TestOptionsReportEveryProblemAtOnceByItsField(t *testing.T) {
	err := core.Options{InlineThreshold: core.NeverInline - 1, WriteBuffer: -1, MinReplicas: -2, Durability: core.Synced + 1, SavepointDir: "not/absolute"}.Validate()
	require.ErrorIs(t, err, fs.ErrInvalid)
	for _, field := range []string{"InlineThreshold is -2", "WriteBuffer is -1", "MinReplicas is -2", "Durability is 4", "SavepointDir"} {
		require.ErrorContains(t, err, "Options."+field)
	}
	require.ErrorContains(t, core.Options{WriteBuffer: core.MaxWriteBuffer + 1}.Validate(), "Options.WriteBuffer")
	for field, opts := range map[string]core.Options{
		"InlineThreshold": {InlineThreshold: core.MaxInlineThreshold + 1},
		"WriteBuffer":     {WriteBuffer: -5},
		"MinReplicas":     {MinReplicas: -1},
		"Durability":      {Durability: 200},
		"SavepointDir":    {SavepointDir: "://"},
	} {
		err := opts.Validate()
		require.ErrorIs(t, err, fs.ErrInvalid, field)
		require.ErrorContains(t, err, "Options."+field)
		_, err = core.NewStorage(memfs.New(memfs.Options{}), "/a", jobID, opts)
		require.ErrorIs(t, err, fs.ErrInvalid, field)
	}
}

func TestOnlyOnKnowsOneFileSystem(t *testing.T) {
	ctx := context.Background()
	counted := faultfs.Wrap(memfs.New(memfs.Options{URI: "hdfs://ns1"}), nil)
	open := core.OnlyOn(counted)
	for text, want := range map[string]string{"hdfs://ns1/a/b": "/a/b", "/a/b": "/a/b", "hdfs://ns1/a/../b/": "/b", "//a": "/a"} {
		fsys, name, err := open(ctx, text)
		require.NoError(t, err, text)
		require.Same(t, counted, fsys)
		require.Equal(t, want, name)
	}
	for _, text := range []string{"", "a", "file:/a", "hdfs://ns2/a", "hdfs:///a", "hdfs://ns1", "hdfs://ns1/a:b", "/a\x00b", "://"} {
		_, _, err := open(ctx, text)
		require.ErrorIs(t, err, fs.ErrInvalid, "%q", text)
		var pathError *fs.PathError
		require.ErrorAs(t, err, &pathError, "%q", text)
	}
	require.Zero(t, counted.Count())
}
