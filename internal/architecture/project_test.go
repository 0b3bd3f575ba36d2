package architecture

import (
	"testing"
)

// rules are all rules, in the order of the files of this package.
var rules = []rule{
	{"imports follow the arrows of the design", checkLayers},
	{"layers do without what is banned for them", checkBans},
	{"importing a library runs no code", checkInit},
	{"files and functions can be read at once", checkLengths(longOnes)},
	{"files are small enough for a clone", checkSizes},
	{"the project speaks of itself only", checkWords},
	{"changelog entries have the form of the template", checkChangelog},
	{"links between pages lead somewhere", checkLinks},
	{"README shows the example that is compiled", checkReadmeExample},
}

func TestProject(t *testing.T) {
	project := loadProject(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range r.check(project) {
				t.Error(f)
			}
		})
	}
}
