package hadoop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"

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

// Prepare makes what is missing; only one process does so at a time. train runs a small cluster with the given parts and
// ends it: the classes that it loads are those of the archive.
func (c Cache) Prepare(ctx context.Context, say func(string), train func(Parts) error) (Parts, error) {
	java, err := FindJava(ctx)
	if err != nil {
		return Parts{}, err
	}
	version := versionOfPom.FindSubmatch(c.Pom)
	if version == nil {
		return Parts{}, fmt.Errorf("the pom names no hadoop.version")
	}
	dir := filepath.Join(c.Dir, fmt.Sprintf("hadoop-%s-%s", version[1], digest(c.Pom)))
	lock, err := lockfile.Wait(ctx, dir+".lock", lockfile.Exclusive)
	if err != nil {
		return Parts{}, err
	}
	defer func() { _ = lock.Unlock() }()
	starter := proc.NewStarter()
	defer starter.Close()

	jars := filepath.Join(dir, "jars")
	if err := once(jars, func(tmp string) error { return c.fetch(ctx, say, starter, tmp) }); err != nil {
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
	p.Template = filepath.Join(dir, "formatted-"+digest([]byte(me.Username)))
	if err := once(p.Template, func(tmp string) error { return format(ctx, starter, p.JVM, tmp) }); err != nil {
		return Parts{}, err
	}

	archive := filepath.Join(dir, "classes-"+digest([]byte(java.Path+java.Version)))
	err = once(archive, func(tmp string) error {
		say("making an archive of Hadoop's classes, once for this JDK")
		return makeArchive(ctx, starter, p, tmp, train)
	})
	if err != nil {
		return Parts{}, err
	}
	p.JVM.Archive = filepath.Join(archive, archiveName)
	return p, nil
}

// fetch leaves the choice of server, proxy and credentials to Maven's own settings.
func (c Cache) fetch(ctx context.Context, say func(string), s *proc.Starter, dir string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("mvn (Maven): %w", ErrMissing)
	}
	say("fetching Hadoop's jars by Maven, 65 MB, once")
	pom := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pom, c.Pom, 0o600); err != nil {
		return err
	}
	_, err = s.Run(exec.CommandContext(ctx, mvn, "-q", "-B", "-f", pom, "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+dir))
	return err
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

// once makes the folder, in full or not at all: whoever sees it sees it finished.
func once(dir string, fill func(tmp string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".unfinished-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := fill(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

func digest(b []byte) string {
	sum := sha256.Sum256(bytes.TrimSpace(b))
	return hex.EncodeToString(sum[:6])
}
