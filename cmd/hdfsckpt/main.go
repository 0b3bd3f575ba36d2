// Hdfsckpt looks at, verifies and disposes of checkpoints of Apache Flink, and of jobs that use this module, on HDFS or on a
// local disk. See docs/command.md.
package main

import (
	"os"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/cli"
)

func main() { os.Exit(cli.Main()) }
