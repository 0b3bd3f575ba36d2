package testenv

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/engine"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/hadoop"
)

//go:embed java/engine java/flink java/flink2 java/hadoop java/spark
var engineSources embed.FS

// The versions that tests run against by default.
const (
	FlinkVersion = "2.3.0"
	SparkVersion = "4.2.0"
)

// EngineSettings say how the JVM of an engine is run. The zero value starts fast and has a heap of 1 GiB.
type EngineSettings = engine.Settings

// EngineError is an exception that an engine has thrown.
type EngineError = engine.Error

// What the JVM has to allow: both engines look into the classes of the JDK.
var (
	flinkFlags = []string{
		"--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED",
		"--add-opens=java.base/java.lang.invoke=ALL-UNNAMED", "--add-opens=java.base/java.time=ALL-UNNAMED",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
	}
	sparkFlags = []string{
		"-XX:+IgnoreUnrecognizedVMOptions", "--enable-native-access=ALL-UNNAMED",
		"--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
		"--add-opens=java.base/java.lang.reflect=ALL-UNNAMED", "--add-opens=java.base/java.io=ALL-UNNAMED",
		"--add-opens=java.base/java.net=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
		"--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED", "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
		"--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
		"--add-opens=java.base/sun.security.action=ALL-UNNAMED", "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
		"--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED", "-Dio.netty.tryReflectionSetAccessible=true",
	}
)

// Engine is the real code of Flink, Spark or Hadoop's client, in a JVM of its own for one test, which ends with the test. Commands are
// documented in the Java files of this package's folder java.
type Engine struct{ *engine.Process }

// RequireFlink returns Flink's own checkpoint classes of the version. Where they cannot be had, the test is skipped, or it fails
// if HDFSCKPT_REQUIRE names "flink" or "all".
func RequireFlink(t testing.TB, version string, s EngineSettings) *Engine {
	t.Helper()
	return requireEngine(t, engine.Kind{
		Name: "flink", Version: version, Property: "flink.version", Main: "flink.FlinkEngine", Flags: flinkFlags, Size: "about 100 MB",
	}, s)
}

// RequireSpark returns Spark's own state stores of the version. Where they cannot be had, the test is skipped, or it fails if
// HDFSCKPT_REQUIRE names "spark" or "all".
func RequireSpark(t testing.TB, version string, s EngineSettings) *Engine {
	t.Helper()
	return requireEngine(t, engine.Kind{
		Name: "spark", Version: version, Property: "spark.version", Main: "spark.SparkEngine", Flags: sparkFlags, Size: "about 280 MB",
	}, s)
}

// RequireHadoop returns Hadoop's own client, that of the version that Require's clusters run. Where it cannot be had, the test is
// skipped, or it fails if HDFSCKPT_REQUIRE names "hadoop" or "all". Connect it with the command "connect" and Cluster.ConfDir.
func RequireHadoop(t testing.TB, s EngineSettings) *Engine {
	t.Helper()
	return requireEngine(t, engine.Kind{
		Name: "hadoop", Version: hadoop.Version(pom), Property: "hadoop.version", Pom: pom, Main: "hadoop.HadoopEngine",
		Flags: []string{"--add-opens=java.base/java.lang=ALL-UNNAMED"}, Size: "65 MB",
	}, s)
}

func requireEngine(t testing.TB, k engine.Kind, s EngineSettings) *Engine {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), prepareTimeout)
	defer cancel()
	p, err := prepareEngine(ctx, k, func(s string) { t.Log(s) })
	switch {
	case err == nil:
	case isMissing(err) && !required(os.Getenv("HDFSCKPT_REQUIRE"), k.Name):
		t.Skipf("left out: %s needs %v", k.Name, err)
	default:
		t.Fatalf("%s %s is not to be had: %v", k.Name, k.Version, err)
	}
	process, err := p.Start(s)
	if err != nil {
		t.Fatalf("start of %s %s: %v", k.Name, k.Version, err)
	}
	t.Cleanup(func() {
		if err := process.Close(); err != nil {
			t.Errorf("end of %s: %v", k.Name, err)
		}
		if log := process.Log(); t.Failed() && log != "" {
			t.Logf("the end of what %s printed:\n%s", k.Name, log)
		}
	})
	return &Engine{process}
}

func prepareEngine(ctx context.Context, k engine.Kind, say func(string)) (engine.Program, error) {
	if os.Getenv("HDFSCKPT_ENGINES") == "none" {
		return engine.Program{}, fmt.Errorf("that HDFSCKPT_ENGINES is not none: %w", errUnfit)
	}
	folders := []string{"engine", k.Name}
	if k.Name == "flink" && k.Version == FlinkVersion {
		folders = append(folders, "flink2") // needs what older ones lack
	}
	for _, name := range folders {
		source, err := fs.Sub(engineSources, "java/"+name)
		if err != nil {
			return engine.Program{}, err
		}
		k.Sources = append(k.Sources, source)
	}
	if k.Pom == nil {
		var err error
		if k.Pom, err = engineSources.ReadFile("java/" + k.Name + "/pom.xml"); err != nil {
			return engine.Program{}, err
		}
	}
	dir, err := cacheDir()
	if err != nil {
		return engine.Program{}, err
	}
	return engine.Prepare(ctx, dir, k, say)
}

// Call calls a command, for at most five minutes, and fails the test if it fails.
func (e *Engine) Call(t testing.TB, command string, words ...string) []byte {
	t.Helper()
	answer, err := e.Try(t, command, words...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Try calls a command, for at most five minutes; what the engine throws is an *EngineError.
func (e *Engine) Try(t testing.TB, command string, words ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	return e.Process.Call(ctx, command, words...)
}
