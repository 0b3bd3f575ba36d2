package kerberos

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServicePrincipalNeedsTheFullNameOfTheHost(t *testing.T) {
	for _, c := range []struct{ pattern, host, want, says string }{
		{"nn/_HOST@EXAMPLE.COM", "NN1.Example.COM", "nn/nn1.example.com@EXAMPLE.COM", ""},
		{"nn/_HOST", "nn2.example.com.", "nn/nn2.example.com", ""},
		{"nn/_HOST@R", "localhost", "nn/localhost@R", ""},
		{"nn/fixed.example.com@R", "10.0.0.1", "nn/fixed.example.com@R", ""},
		{"hdfs@R", "short", "hdfs@R", ""},
		{"nn/_HOST@R", "NN1", "", `would ask for the principal "nn/nn1@R", but the host is a short name`},
		{"nn/_HOST@R", "10.0.0.1", "", `"nn/10.0.0.1@R", but the host is an IP address`},
		{"nn/_HOST@R", "[::1]", "", "is an IP address"},
		{"nn/_HOST@R", "fe80::1", "", "is an IP address"},
		{"nn/_HOST@R", "", "", "is empty"},
		{"nn/_HOST@R", "nn1.example.com:8020", "", "is not a host name alone"},
		{"nn/_HOST@R", "nn1..com", "", "has an empty label"},
		{"nn/a_HOST@R", "nn1.example.com", "", "has to be the whole instance"},
		{"/_HOST@R", "nn1.example.com", "", "is not of the form"},
		{"nn/_HOST@", "nn1.example.com", "", "is not of the form"},
	} {
		got, err := ServicePrincipal(c.pattern, c.host)
		require.Equal(t, c.want, got, "%s for %s", c.pattern, c.host)
		if c.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, fs.ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}
}
