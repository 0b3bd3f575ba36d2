//go:build race

package coordinator

// stride of the sweeps: the race detector makes everything slow, and sees what it can see without every single case.
const stride = 7
