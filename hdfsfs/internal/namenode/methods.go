package namenode

import "github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"

// method is what is to be known of one before it is called.
type method struct {
	semantics rpc.Semantics
	// large answers hold a list: of entries, of blocks.
	large bool
}

// methods are those of ClientProtocol that are called here, with Hadoop's marks.
var methods = map[string]method{
	"getServerDefaults":      {},
	"getFileInfo":            {},
	"getFileLinkInfo":        {},
	"getLocatedFileInfo":     {large: true},
	"getListing":             {large: true},
	"getBlockLocations":      {large: true},
	"getContentSummary":      {},
	"isFileClosed":           {},
	"getErasureCodingPolicy": {},
	"getStoragePolicy":       {},
	"getDataEncryptionKey":   {},
	"setSafeMode":            {},
	"getHAServiceState":      {},

	"create":           {semantics: rpc.AtMostOnce},
	"rename2":          {semantics: rpc.AtMostOnce},
	"delete":           {semantics: rpc.AtMostOnce},
	"mkdirs":           {},
	"setReplication":   {},
	"setPermission":    {},
	"setStoragePolicy": {},
	"recoverLease":     {},
	"renewLease":       {},

	"addBlock":               {},
	"abandonBlock":           {},
	"getAdditionalDatanode":  {},
	"updateBlockForPipeline": {},
	"updatePipeline":         {semantics: rpc.AtMostOnce},
	"fsync":                  {},
	"complete":               {},
	"reportBadBlocks":        {},
}
