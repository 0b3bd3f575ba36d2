package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

// Version of the command.
type Version struct {
	// Release is that of the module, "(devel)" if it was built from a checkout.
	Release string `json:"release"`
	// Revision of the checkout, if it is known.
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// BuildVersion is the version of the program that runs.
func BuildVersion() Version {
	v := Version{Release: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Release = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			v.Revision = setting.Value
		}
	}
	return v
}

func (v Version) show(p *text.Printer) {
	revision := ""
	if v.Revision != "" {
		revision = " " + v.Revision
	}
	p.Line("%s %s%s %s %s", Name, v.Release, revision, v.Go, v.Platform)
}
