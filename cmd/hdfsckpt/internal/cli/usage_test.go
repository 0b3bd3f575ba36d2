package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

func TestWrongCommandLinesExitWith2AndSayWhatIsRight(t *testing.T) {
	for _, tt := range []struct {
		args    string
		message string
	}{
		{"lss /x", `unknown command "lss" for "hdfsckpt"`},
		{"ls", "ls needs a ROOT"},
		{"ls /a /b", "ls takes one ROOT, not 2"},
		{"latest", "latest needs a ROOT"},
		{"inspect", "inspect needs a POINTER"},
		{"inspect /a /b", "inspect takes one POINTER, not 2"},
		{"inspect --largest -1 /a", "--largest is -1: it must be from 0 to 1000"},
		{"inspect --largest 1001 /a", "--largest is 1001: it must be from 0 to 1000"},
		{"inspect --format xml /a", `--format is "xml": it must be text or flink-dump`},
		{"verify", "verify needs a POINTER"},
		{"verify --parallel 0 /a", "--parallel is 0: it must be from 1 to 1024"},
		{"verify --parallel 1025 /a", "--parallel is 1025: it must be from 1 to 1024"},
		{"verify --parallel x /a", `invalid argument "x" for "--parallel" flag`},
		{"verify --path-map /a /a", `--path-map is "/a": it must be OLD=NEW`},
		{"verify --path-map =/b /a", `--path-map is "=/b": it must be OLD=NEW`},
		{"verify --path-map hdfs:x=/b /a", `"hdfs:x" is no URL of a path`},
		{"verify --max-findings -1 /a", "--max-findings is -1: it must not be negative"},
		{"inspect --path-map x /a", `--path-map is "x": it must be OLD=NEW`},
		{"diff /a", "diff needs two POINTERs, not 1"},
		{"diff --files -1 /a /b", "--files is -1: it must be from 0 to 100000"},
		{"cat /a", "cat needs a POINTER and a FILE, not 1"},
		{"convert /a /b", "convert needs --version 3, 4, 5 or 6"},
		{"convert --version 2 /a /b", "convert needs --version 3, 4, 5 or 6"},
		{"dispose", "dispose needs a POINTER"},
		{"dispose --no /a", "unknown flag: --no"},
		{"doctor", "doctor needs a URL"},
		{"doctor /a /b", "doctor takes one URL, not 2"},
		{"latest --job abc /a", "--job: invalid argument"},
		{"ls --fs hdfs /a", `--fs is "hdfs": it must be the URL of a file system`},
		{"ls --fs hdfs://ns1/a /a", `--fs is "hdfs://ns1/a"`},
		{"ls --fs hdfs://ns1 a/b", `"a/b" is relative, which only local paths may be`},
		{"ls hdfs:a", `"hdfs:a" is no URL of a path`},
		{"ls a:b/c", `"a:b/c" is no URL of a path`},
		{"ls --client java hdfs://nn/a", "--client is \"java\": it must be native or library"},
		{"ls --timeout -1s /a", "--timeout is -1s: it must not be negative"},
		{"ls --timeout 5 /a", `invalid argument "5" for "--timeout" flag`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			r := newRig(t)
			args := strings.Fields(tt.args)
			got := r.run(args...)
			require.Equal(t, 2, got.code, got.stderr)
			require.Empty(t, got.stdout)
			require.Contains(t, got.stderr, "hdfsckpt: "+tt.message)

			d := r.decode(r.run(append(args, "--json")...), nil)
			require.Equal(t, 2, d.ExitCode)
			require.Equal(t, report.Usage, d.Errors[0].Kind)
			require.Contains(t, d.Errors[0].Message, tt.message)
			require.JSONEq(t, "null", string(d.Result))
		})
	}
}

func TestAnEmptyArgumentIsNotTheCurrentDirectory(t *testing.T) {
	r := newRig(t)
	for _, verb := range []string{"ls", "latest", "inspect", "verify", "diff", "cat", "convert", "dispose", "doctor"} {
		require.Equal(t, 2, r.run(verb, "").code, verb)
	}
}

func TestASimilarCommandIsSuggested(t *testing.T) {
	require.Contains(t, newRig(t).run("verfy", "/x").stderr, "Did you mean this? verify")
}

func TestEveryVerbHasHelpWithExamples(t *testing.T) {
	r := newRig(t)
	for _, verb := range []string{"ls", "latest", "inspect", "verify", "diff", "cat", "convert", "dispose", "doctor"} {
		got := r.golden("help-"+verb+".txt", verb, "--help")
		require.Equal(t, 0, got.code)
		require.Contains(t, got.stdout, "Examples:")
		require.Equal(t, got.stdout, r.run("help", verb).stdout)
		text, _, _ := strings.Cut(got.stdout, "\nUsage:")
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, len([]rune(line)), 91, line)
		}
	}
	got := r.golden("help.txt")
	require.Equal(t, got.stdout, r.run("--help").stdout)
}

func TestCompletionKnowsVerbsAndFlagValues(t *testing.T) {
	r := newRig(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := r.run("completion", shell)
		require.Equal(t, 0, got.code)
		require.Contains(t, got.stdout, "hdfsckpt")
	}
	for args, want := range map[string]string{
		"__complete ver":                   "verify\tCheck that a checkpoint is all there",
		"__complete inspect --format ":     "flink-dump",
		"__complete ls --fs ":              "file://",
		"__complete dispose --ignore":      "--ignore-metadata",
		"__complete verify --path-map= --": "--deep",
	} {
		got := r.run(splitKeepingEmpty(args)...)
		require.Equal(t, 0, got.code)
		require.Contains(t, got.stdout, want, args)
	}
}

// splitKeepingEmpty splits at single spaces, so that a space at the end makes an empty argument.
func splitKeepingEmpty(args string) []string { return strings.Split(args, " ") }

func TestVersionTellsWhatWasBuilt(t *testing.T) {
	r := newRig(t)
	require.Equal(t, result{stdout: "hdfsckpt v1.2.3 go1.26 linux/amd64\n"}, r.run("--version"))
	var v Version
	require.Equal(t, "hdfsckpt/version", r.json(&v, "--version").Format)
	require.Equal(t, Version{Release: "v1.2.3", Go: "go1.26", Platform: "linux/amd64"}, v)
	built := BuildVersion()
	require.NotEmpty(t, built.Release)
	require.NotEmpty(t, built.Go)
}
