package pipeline

import (
	"slices"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// verdict is whom an acknowledgement or a failure blames.
type verdict struct {
	ok      bool
	bad     int  // index in the pipeline
	restart bool // it said that it restarts
}

// judge blames the last node of the pipeline whose reply is not a success: those before it repeat what they were told. A node whose
// reply is missing has not acknowledged anything.
func judge(a *wire.PipelineAck, nodes int) verdict {
	for i := min(a.Len(), nodes) - 1; i >= 0; i-- {
		switch a.Status(i) {
		case wire.Status_SUCCESS:
		case wire.Status_OOB_RESTART:
			return verdict{bad: i, restart: true}
		default:
			return verdict{bad: i}
		}
	}
	if a.Len() < nodes {
		return verdict{bad: a.Len()}
	}
	return verdict{ok: true}
}

// blamed is the index of the node that the answer to a set-up blames: the first one if it blames nobody we know.
func blamed(firstBadLink string, addresses []string) int {
	return max(0, slices.Index(addresses, firstBadLink))
}

// replacement is when a pipeline that has lost nodes gets another one.
type replacement struct {
	Replication int  // of the file
	Required    int  // replicas that a block must have at its end
	Flushed     bool // a reader may rely on what was written
	Closing     bool // the block is at its end: the NameNode will have it copied
	Never       bool // dfs.client.block.write.replace-datanode-on-failure.enable is false, or the policy NEVER
	Always      bool // the policy ALWAYS
}

// wanted decides for the survivors of a pipeline. Hadoop's policy DEFAULT replaces where three or more replicas are wanted and
// half of them are lost, or where a reader relies on them. Beyond that a node is added where the block would end with fewer
// replicas than it must.
func (r replacement) wanted(survivors int) bool {
	switch {
	case survivors >= r.Replication:
		return false
	case survivors < r.Required:
		return true
	case r.Never, r.Closing:
		return false
	case r.Always:
		return true
	}
	return r.Replication >= 3 && (survivors <= r.Replication/2 || r.Flushed)
}

// members are the nodes of a pipeline with the storages that hold their replicas; all slices have one length, storageIDs may be
// empty.
type members struct {
	nodes      []*wire.DatanodeInfo
	types      []wire.StorageType
	storageIDs []string
}

func membersOf(b *wire.LocatedBlock) members {
	m := members{nodes: b.GetLocs(), types: b.GetStorageTypes(), storageIDs: b.GetStorageIds()}
	for len(m.types) < len(m.nodes) {
		m.types = append(m.types, wire.StorageType_DISK)
	}
	m.types = m.types[:len(m.nodes)]
	if len(m.storageIDs) != len(m.nodes) {
		m.storageIDs = nil
	}
	return m
}

// without is the pipeline without node i.
func (m members) without(i int) members {
	cut := members{nodes: slices.Delete(slices.Clone(m.nodes), i, i+1), types: slices.Delete(slices.Clone(m.types), i, i+1)}
	if m.storageIDs != nil {
		cut.storageIDs = slices.Delete(slices.Clone(m.storageIDs), i, i+1)
	}
	return cut
}

// added is the one node of an answer to getAdditionalDatanode that is not in the pipeline; false if the answer is another one.
func (m members) added(answer members) (int, bool) {
	if len(answer.nodes) != len(m.nodes)+1 {
		return 0, false
	}
	found := -1
	for i, node := range answer.nodes {
		if slices.ContainsFunc(m.nodes, func(old *wire.DatanodeInfo) bool { return sameNode(old, node) }) {
			continue
		}
		if found >= 0 {
			return 0, false
		}
		found = i
	}
	return found, found >= 0
}

// only is the pipeline of node i alone.
func (m members) only(i int) members {
	one := members{nodes: m.nodes[i : i+1], types: m.types[i : i+1]}
	if m.storageIDs != nil {
		one.storageIDs = m.storageIDs[i : i+1]
	}
	return one
}

func sameNode(a, b *wire.DatanodeInfo) bool {
	return a.GetId().GetDatanodeUuid() == b.GetId().GetDatanodeUuid()
}
