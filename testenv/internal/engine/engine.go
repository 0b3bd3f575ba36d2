// Package engine runs the code of a real stream-processing engine in a JVM and calls it.
package engine

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/jdk"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/lockfile"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// Kind is an engine of one version with a program around it.
type Kind struct {
	Name     string // "flink"
	Version  string
	Property string // of the pom, that the version is given by: "flink.version"
	Pom      []byte
	Sources  []fs.FS // of .java and .properties files
	Main     string  // the class
	Flags    []string
	Size     string // of what is fetched, for people: "180 MB"
}

// Program is an engine that can be started.
type Program struct {
	kind    Kind
	java    jdk.Java
	jars    string
	classes string
}

// Prepare fetches and compiles what is missing in the cache folder; only one process does so at a time.
func Prepare(ctx context.Context, cache string, k Kind, say func(string)) (Program, error) {
	java, err := jdk.FindJava(ctx)
	if err != nil {
		return Program{}, err
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%s-%s", k.Name, k.Version, jdk.Digest(k.Pom)))
	lock, err := lockfile.Wait(ctx, dir+".lock", lockfile.Exclusive)
	if err != nil {
		return Program{}, err
	}
	defer func() { _ = lock.Unlock() }()
	starter := proc.NewStarter()
	defer starter.Close()
	p := Program{kind: k, java: java, jars: filepath.Join(dir, "jars")}
	err = jdk.Once(p.jars, func(tmp string) error {
		say(fmt.Sprintf("fetching the jars of %s %s by Maven, %s, once", k.Name, k.Version, k.Size))
		return jdk.Fetch(ctx, starter, k.Pom, tmp, k.Property+"="+k.Version)
	})
	if err != nil {
		return Program{}, err
	}
	sources, err := digestOf(k.Sources)
	if err != nil {
		return Program{}, err
	}
	p.classes = filepath.Join(dir, "classes-"+sources)
	return p, jdk.Once(p.classes, func(tmp string) error { return java.Compile(ctx, starter, k.Sources, p.jars, tmp) })
}

func digestOf(sources []fs.FS) (string, error) {
	var all strings.Builder
	for _, source := range sources {
		names, err := fs.Glob(source, "*.*")
		if err != nil {
			return "", err
		}
		for _, name := range names {
			text, err := fs.ReadFile(source, name)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&all, "%s %d\n%s", name, len(text), text)
		}
	}
	return jdk.Digest([]byte(all.String())), nil
}
