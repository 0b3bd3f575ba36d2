// Package text shows reports to people: tables, trees, sizes, ages, colours. Nothing that comes from a file or a file name
// reaches the terminal unfiltered: control characters are shown as escapes.
package text
