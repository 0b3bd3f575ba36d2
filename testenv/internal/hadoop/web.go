package hadoop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxPage bounds what is read of a page.
const maxPage = 64 << 20

// web keeps no connection: the daemon at the other end may be stopped or killed.
var web = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get reads a page of the web server at the address.
func get(ctx context.Context, address, page string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := web.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", req.URL.Path, resp.Status)
	}
	return body, err
}

// beans decodes the managed beans that match the query.
func beans[T any](ctx context.Context, address, query string) ([]T, error) {
	page, err := get(ctx, address, "/jmx?qry="+url.QueryEscape(query))
	if err != nil {
		return nil, err
	}
	var all struct {
		Beans []T `json:"beans"`
	}
	if err := json.Unmarshal(page, &all); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", query, address, err)
	}
	return all.Beans, nil
}

func bean[T any](ctx context.Context, address, query string) (T, error) {
	all, err := beans[T](ctx, address, query)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%s of %s: %d beans, not 1", query, address, len(all))
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// NameNodeStatus is what matters of a NameNode's state.
type NameNodeStatus struct {
	SafeMode string // why, or empty
	Live     int    // DataNodes that it counts as alive
}

// NameNodeStatusOf asks the NameNode whose web server has the address.
func NameNodeStatusOf(ctx context.Context, address string) (NameNodeStatus, error) {
	info, err := bean[struct{ Safemode string }](ctx, address, "Hadoop:service=NameNode,name=NameNodeInfo")
	if err != nil {
		return NameNodeStatus{}, err
	}
	state, err := bean[struct{ NumLiveDataNodes int }](ctx, address, "Hadoop:service=NameNode,name=FSNamesystemState")
	return NameNodeStatus{info.Safemode, state.NumLiveDataNodes}, err
}

// Registered reports whether the DataNode whose web server has the address serves its NameNode.
func Registered(ctx context.Context, address string) (bool, error) {
	info, err := bean[struct{ BPServiceActorInfo string }](ctx, address, "Hadoop:service=DataNode,name=DataNodeInfo")
	if err != nil {
		return false, err
	}
	var actors []struct{ ActorState string }
	if err := json.Unmarshal([]byte(info.BPServiceActorInfo), &actors); err != nil {
		return false, fmt.Errorf("BPServiceActorInfo of %s: %w", address, err)
	}
	return len(actors) == 1 && actors[0].ActorState == "RUNNING", nil
}

// Fsck is the report of the NameNode about the files below a path, with their blocks and where these are. The web server
// believes who the user is.
func Fsck(ctx context.Context, address, user, path string) (string, error) {
	q := url.Values{"user.name": {user}, "ugi": {user}, "path": {path}}
	for _, detail := range []string{"files", "blocks", "locations", "openforwrite"} {
		q.Set(detail, "1")
	}
	page, err := get(ctx, address, "/fsck?"+q.Encode())
	return string(page), err
}

// Calls counts the calls that a NameNode answered, by method, as in "GetFileInfo".
type Calls map[string]int

// CallsOf asks the NameNode whose web server has the address. The counts are as old as the period of its metrics.
func CallsOf(ctx context.Context, address string) (Calls, error) {
	all, err := beans[map[string]any](ctx, address, "Hadoop:service=NameNode,name=RpcDetailedActivityForPort*")
	if err != nil {
		return nil, err
	}
	return countCalls(all), nil
}

// countCalls reads pairs like "GetFileInfoNumOps": 3. The same calls appear again as "Deferred…" and "Overall…", and those that
// failed by the name of their exception.
func countCalls(all []map[string]any) Calls {
	calls := Calls{}
	for _, bean := range all {
		for name, value := range bean {
			method, ok := strings.CutSuffix(name, "NumOps")
			n, isNumber := value.(float64)
			if ok && method != "" && isNumber && n >= 1 && n <= math.MaxInt32 && !again(method) {
				calls[method] += int(n)
			}
		}
	}
	return calls
}

func again(method string) bool {
	return strings.HasPrefix(method, "Deferred") || strings.HasPrefix(method, "Overall") ||
		strings.HasSuffix(method, "Exception") || strings.HasSuffix(method, "Error")
}

// Since returns the calls after an earlier count.
func (c Calls) Since(before Calls) Calls {
	since := Calls{}
	for method, n := range c {
		if n > before[method] {
			since[method] = n - before[method]
		}
	}
	return since
}

// ofDataNodes are the methods that DataNodes call by themselves.
var ofDataNodes = []string{"SendHeartbeat", "SendLifeline", "RegisterDatanode", "VersionRequest", "BlockReport", "BlockReceivedAndDeleted", "CacheReport", "CommitBlockSynchronization"}

// OfClients leaves out what DataNodes call by themselves.
func (c Calls) OfClients() Calls {
	clients := maps.Clone(c)
	for _, method := range ofDataNodes {
		delete(clients, method)
	}
	return clients
}

// Total is the number of all calls.
func (c Calls) Total() int {
	total := 0
	for _, n := range c {
		total += n
	}
	return total
}

// String lists the calls by name: "Create 1, GetFileInfo 3".
func (c Calls) String() string {
	var parts []string
	for _, method := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", method, c[method]))
	}
	return strings.Join(parts, ", ")
}
