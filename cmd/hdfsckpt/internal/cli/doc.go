// Package cli is the command line of hdfsckpt: flags, help, exit codes, and the way from a verb's report to the streams. A
// [Program] has everything of the surroundings that the command uses, so that tests run it in their own process.
package cli
