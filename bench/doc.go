// Package bench compares the library with what it is built on, or with other engines, in one run: its figures are ratios,
// which carry over to other machines better than rates do. Nothing here asserts a speed.
package bench
