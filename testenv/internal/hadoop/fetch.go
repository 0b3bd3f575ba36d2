package hadoop

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/jdk"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/lockfile"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// Cache holds what clusters are made from, and is made once: jars, an empty file system, an archive of classes. It may be
// deleted at any time when no cluster runs.
type Cache struct {
	Dir string // absolute
	Pom []byte // names the jars, for Maven
}

// Parts are the parts of a cache, ready for use.
type Parts struct {
	JVM      JVM
	Template string // a formatted name directory
}

var versionOfPom = regexp.MustCompile(`<hadoop.version>([^<]+)</hadoop.version>`)

// Version returns the version of Hadoop that a pom names, "" if it names none.
func Version(pom []byte) string {
	version := versionOfPom.FindSubmatch(pom)
	if version == nil {
		return ""
	}
	return string(version[1])
}

// Prepare makes what is missing; only one process does so at a time. train runs a small cluster with the given parts and
// ends it: the classes that it loads are those of the archive.
func (c Cache) Prepare(ctx context.Context, say func(string), train func(Parts) error) (Parts, error) {
	java, err := jdk.FindJava(ctx)
	if err != nil {
		return Parts{}, err
	}
	version := Version(c.Pom)
	if version == "" {
		return Parts{}, errors.New("the pom names no hadoop.version")
	}
	dir := filepath.Join(c.Dir, fmt.Sprintf("hadoop-%s-%s", version, jdk.Digest(c.Pom)))
	lock, err := lockfile.Wait(ctx, dir+".lock", lockfile.Exclusive)
	if err != nil {
		return Parts{}, err
	}
	defer func() { _ = lock.Unlock() }()
	starter := proc.NewStarter()
	defer starter.Close()

	jars := filepath.Join(dir, "jars")
	if err := jdk.Once(jars, func(tmp string) error {
		say("fetching Hadoop's jars by Maven, 65 MB, once")
		return jdk.Fetch(ctx, starter, c.Pom, tmp)
	}); err != nil {
		return Parts{}, err
	}
	p := Parts{JVM: JVM{Java: java}}
	if p.JVM.Jars, err = filepath.Glob(filepath.Join(jars, "*.jar")); err != nil {
		return Parts{}, err
	}
	slices.Sort(p.JVM.Jars)

	// The root directory belongs to whoever formatted.
	me, err := user.Current()
	if err != nil {
		return Parts{}, err
	}
	p.Template = filepath.Join(dir, "formatted-"+jdk.Digest([]byte(me.Username)))
	if err := jdk.Once(p.Template, func(tmp string) error { return format(ctx, starter, p.JVM, tmp) }); err != nil {
		return Parts{}, err
	}

	archive := filepath.Join(dir, "classes-"+jdk.Digest([]byte(java.Path+java.Version)))
	err = jdk.Once(archive, func(tmp string) error {
		say("making an archive of Hadoop's classes, once for this JDK")
		return makeArchive(ctx, starter, p, tmp, train)
	})
	if err != nil {
		return Parts{}, err
	}
	p.JVM.Archive = filepath.Join(archive, archiveName)
	return p, nil
}

// format makes an empty file system.
func format(ctx context.Context, s *proc.Starter, j JVM, dir string) error {
	conf := filepath.Join(dir, "conf")
	site := Site{"dfs.namenode.name.dir": "file://" + dir, "fs.defaultFS": "hdfs://127.0.0.1:1"}
	if err := writeConf(conf, site); err != nil {
		return err
	}
	_, err := s.Run(exec.CommandContext(ctx, j.Java.Path,
		j.Args(conf, "128m", nameNodeClass, "-format", "-force", "-nonInteractive", "-clusterid", "hdfsckpt")...))
	return err
}
