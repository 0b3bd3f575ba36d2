package pipeline

import "syscall"

func mountSmallDisk(dir string) error { return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=300m") }

func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
