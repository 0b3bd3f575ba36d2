// Package architecture holds the rules of this module that a compiler or linter does not know, as tests: who may import
// whom, what core and statestore may call, how long files and functions may be, which words have no place here, and that
// README, changelog and dependency lists say what is so.
//
// A rule is a function from the files of a tree to findings. It runs on the project (TestProject) and, so that it is known
// to be able to fail, on small trees made for it (TestRules). Each finding says what to do instead.
package architecture
