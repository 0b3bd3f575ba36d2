package sparkckpt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatSparkMakesOfForeignNames(t *testing.T) {
	for name, want := range map[string]string{
		"1.delta": "", "1.snapshot": "", "LOCK": "", "_gostate": "", "3.delta.meta": "", "1.delta.go.json": "", "2.delta.crc": "", ".1.delta.crc": "", "7": "",
		".1.delta.0a7e6a1c-0a7e-4a7e-8a7e-0a7e6a1c0a7e.tmp": "", "7.go": "",
		"manifest.json": "no snapshots", "foo.delta": "no snapshots", ".lock": "no snapshots", "sub.dir": "no snapshots", "1e3.delta": "no snapshots",
		"99999999999999999999.delta": "no snapshots", "1_0.delta": "no snapshots",
		"12_ab.snapshot": "every load", ".12_ab.snapshot": "every load", ".snapshot": "every load",
		"03.delta": "for a version", "+4.delta": "for a version", "-1.delta": "for a version", "4.Delta": "for a version", "0.snapshot": "for a version",
	} {
		got := sparkTrouble(name)
		if want == "" {
			require.Empty(t, got, name)
		} else {
			require.Contains(t, got, want, name)
		}
	}
}
