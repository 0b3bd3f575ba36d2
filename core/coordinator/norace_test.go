//go:build !race

package coordinator

// stride of the sweeps.
const stride = 1
