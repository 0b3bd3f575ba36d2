package hdfsfs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/conf"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// setErasureCoding asks the NameNode, by WebHDFS, to keep the new files of a directory erasure-coded.
func setErasureCoding(ctx context.Context, c *testenv.Cluster, dir string) error {
	site, err := conf.Load(conf.Source{Dir: c.ConfDir()})
	if err != nil {
		return err
	}
	address, _ := site.Get("dfs.namenode.http-address")
	query := url.Values{"op": {"SETECPOLICY"}, "ecpolicy": {"XOR-2-1-1024k"}, "user.name": {c.Credentials("").User}}
	u := url.URL{Scheme: "http", Host: address, Path: "/webhdfs/v1" + dir, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return nil
}
