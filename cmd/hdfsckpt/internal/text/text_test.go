package text

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		-1: "?", 0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB",
		1<<30 - 1: "1.0 GiB", 5 << 40: "5.0 TiB", math.MaxInt64: "8.0 EiB",
	} {
		require.Equal(t, want, Size(bytes))
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 61 * time.Second: "1m 1s", time.Hour: "1h",
		time.Hour + 30*time.Minute: "1h 30m", 25 * time.Hour: "1d 1h", 400 * 24 * time.Hour: "400d", 48*time.Hour + time.Minute: "2d",
	} {
		require.Equal(t, want, Age(d))
	}
}

func TestCountAndPercent(t *testing.T) {
	require.Equal(t, "0 files", Count(0, "file"))
	require.Equal(t, "1 file", Count(1, "file"))
	require.Equal(t, "2 directories", Count(2, "directory"))
	require.Equal(t, "33%", Percent(1, 3))
	require.Equal(t, "-", Percent(1, 0))
}

func TestCleanLeavesNothingThatATerminalWouldObey(t *testing.T) {
	for foreign, want := range map[string]string{
		"":                 "",
		"plain é文 😀":       "plain é文 😀",
		"\x1b[31mred":      `\x1b[31mred`,
		"a\nb\tc\x00\x7f":  `a\nb\tc\x00\x7f`,
		"\xff\xfe":         `\xff\xfe`,
		"\u202egpj.exe":    `\u202egpj.exe`,
		"\u009b31m":        `\u009b31m`,
		`back\slash "quo"`: `back\slash "quo"`,
		"�":                "�",
	} {
		require.Equal(t, want, Clean(foreign))
	}
}

func TestTableAlignsColumnsAndLeavesNoSpaceAtTheEnd(t *testing.T) {
	table := NewTable(Column{Title: "NAME"}, Column{Title: "N", Right: true}, Column{Title: "WHAT"})
	table.Row(Cell{Text: "é"}, Cell{Text: "100"}, Cell{Text: "x", Style: Bad})
	table.Row(Cell{Text: "longer"}, Cell{Text: "1"}, Cell{Text: ""})
	var plain, colored bytes.Buffer
	table.Print(NewPrinter(&plain, false))
	require.Equal(t, "NAME      N  WHAT\né       100  x\nlonger    1  \n", plain.String())
	table.Print(NewPrinter(&colored, true))
	require.Contains(t, colored.String(), "é       100  \x1b[31mx\x1b[0m\n")
}

func TestTree(t *testing.T) {
	root := &Node{Text: "root"}
	a := root.Add("a")
	a.Add("a1").Add("a1x")
	a.Add("a2")
	root.Add("b").Add("b1")
	var out bytes.Buffer
	root.Print(NewPrinter(&out, false))
	require.Equal(t, `root
├─ a
│  ├─ a1
│  │  └─ a1x
│  └─ a2
└─ b
   └─ b1
`, out.String())
}

func TestNearShortensPathsBesideTheCheckpoint(t *testing.T) {
	for file, want := range map[string]string{
		"file:/j/chk-1/a":    "./a",
		"file:/j/shared/b":   "../shared/b",
		"file:/j/chk-10/c":   "../chk-10/c",
		"hdfs://n/j/chk-1/d": "hdfs://n/j/chk-1/d",
		"file:/k/e":          "file:/k/e",
	} {
		require.Equal(t, want, near("file:/j/chk-1", file))
	}
}

type failing struct{ calls int }

func (f *failing) Write([]byte) (int, error) {
	f.calls++
	return 0, bytes.ErrTooLarge
}

func TestAPrinterStopsAtTheFirstFailure(t *testing.T) {
	w := new(failing)
	p := NewPrinter(w, false)
	p.Line("a")
	p.Line("b")
	_, err := p.Write([]byte("c"))
	require.ErrorIs(t, err, bytes.ErrTooLarge)
	require.ErrorIs(t, p.Err(), bytes.ErrTooLarge)
	require.Equal(t, 1, w.calls)
}
