package wire

import (
	"strings"
	"testing"

	_ "github.com/colinmarc/hdfs/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// The messages of colinmarc/hdfs are made from Hadoop's own files. That both are in this test binary shows that they do not
// collide; that ours agree with them is tested here.

// hadoopNames are those that do not follow from ours.
var hadoopNames = map[protoreflect.Name]string{
	"RpcResponseHeader.Status":            "hadoop.common.RpcResponseHeaderProto.RpcStatusProto",
	"RpcResponseHeader.ErrorCode":         "hadoop.common.RpcResponseHeaderProto.RpcErrorCodeProto",
	"RpcRequestHeader.Kind":               "hadoop.common.RpcKindProto",
	"RpcRequestHeader.Op":                 "hadoop.common.RpcRequestHeaderProto.OperationProto",
	"RpcCallerContext":                    "hadoop.common.RPCCallerContextProto",
	"RpcSasl":                             "hadoop.common.RpcSaslProto",
	"RpcSasl.State":                       "hadoop.common.RpcSaslProto.SaslState",
	"RpcSasl.Auth":                        "hadoop.common.RpcSaslProto.SaslAuth",
	"ErasureCodingSchema":                 "hadoop.hdfs.ECSchemaProto",
	"Status":                              "hadoop.hdfs.Status",
	"OpWriteBlock.Stage":                  "hadoop.hdfs.OpWriteBlockProto.BlockConstructionStage",
	"BlockChecksumOptions.Type":           "hadoop.hdfs.BlockChecksumTypeProto",
	"CipherOption.Suite":                  "hadoop.hdfs.CipherSuiteProto",
	"DataTransferEncryptorMessage.Status": "hadoop.hdfs.DataTransferEncryptorMessageProto.DataTransferEncryptorStatus",
	"SetSafeModeRequest.Action":           "hadoop.hdfs.SafeModeActionProto",
	"HAServiceState":                      "hadoop.common.HAServiceStateProto",
	"GetHAServiceStateRequest":            "hadoop.hdfs.HAServiceStateRequestProto",
	"GetHAServiceStateResponse":           "hadoop.hdfs.HAServiceStateResponseProto",
}

// newer are fields and values that Hadoop got after the files of colinmarc/hdfs were copied.
var newer = map[string]bool{
	"RpcRequestHeader.router_federated_state":  true,
	"RpcResponseHeader.router_federated_state": true,
	"NVDIMM":                                          true,
	"DatanodeInfo.software_version":                   true,
	"HdfsFileStatus.namespace":                        true,
	"FsServerDefaults.snapshot_trash_root_enabled":    true,
	"RenewLeaseRequest.namespaces":                    true,
	"SM4_CTR_NOPADDING":                               true,
	"DataTransferEncryptorMessage.access_token_error": true,
}

func hadoopName(name protoreflect.Name) []protoreflect.FullName {
	if known, ok := hadoopNames[name]; ok {
		return []protoreflect.FullName{protoreflect.FullName(known)}
	}
	parts := strings.Split(string(name), ".")
	parts[0] += "Proto"
	if len(parts) > 1 {
		parts[1] = strings.TrimSuffix(parts[1], "Proto")
	}
	joined := strings.Join(parts, ".")
	return []protoreflect.FullName{
		protoreflect.FullName("hadoop.hdfs." + joined), protoreflect.FullName("hadoop.common." + joined),
		protoreflect.FullName("hadoop.hdfs." + joined + "Proto"),
	}
}

func findHadoop(name protoreflect.Name) protoreflect.Descriptor {
	for _, candidate := range hadoopName(name) {
		if d, err := protoregistry.GlobalFiles.FindDescriptorByName(candidate); err == nil {
			return d
		}
	}
	return nil
}

func localName(d protoreflect.Descriptor) protoreflect.Name {
	return protoreflect.Name(strings.TrimPrefix(string(d.FullName()), "hdfsckpt.wire."))
}

func TestMessagesAreThoseOfHadoop(t *testing.T) {
	compared := 0
	for _, file := range []protoreflect.FileDescriptor{
		File_hdfsfs_internal_wire_rpc_proto, File_hdfsfs_internal_wire_hdfs_proto,
		File_hdfsfs_internal_wire_namenode_proto, File_hdfsfs_internal_wire_datatransfer_proto,
	} {
		compared += compareEnums(t, file.Enums())
		compared += compareMessages(t, file.Messages())
	}
	require.Greater(t, compared, 100)
}

func compareMessages(t *testing.T, ours protoreflect.MessageDescriptors) (compared int) {
	for i := range ours.Len() {
		m := ours.Get(i)
		compared += compareEnums(t, m.Enums()) + compareMessages(t, m.Messages())
		t.Run(string(localName(m)), func(t *testing.T) {
			theirs, ok := findHadoop(localName(m)).(protoreflect.MessageDescriptor)
			require.True(t, ok, "Hadoop has no such message")
			compared++
			compareFields(t, m, theirs)
		})
	}
	return compared
}

func compareFields(t *testing.T, ours, theirs protoreflect.MessageDescriptor) {
	for i := range ours.Fields().Len() {
		f := ours.Fields().Get(i)
		name := string(localName(f))
		g := theirs.Fields().ByNumber(f.Number())
		if g == nil {
			require.True(t, newer[name], "%s: Hadoop has no field %d", name, f.Number())
			continue
		}
		require.Equal(t, flat(g.Name()), flat(f.Name()), "name of field %d", f.Number())
		if !partOf[string(localName(ours))] {
			require.Equal(t, g.Cardinality(), f.Cardinality(), name)
		}
		require.Equal(t, wireKind(g.Kind()), wireKind(f.Kind()), name)
		if f.Cardinality() == protoreflect.Repeated {
			require.Equal(t, g.IsPacked(), f.IsPacked(), name)
		}
		if f.HasDefault() {
			require.Equal(t, number(g.Default()), number(f.Default()), name)
		}
	}
	for i := range theirs.RequiredNumbers().Len() {
		n := theirs.RequiredNumbers().Get(i)
		if f := ours.Fields().ByNumber(n); f == nil && !partOf[string(localName(ours))] {
			t.Errorf("the required field %s is missing", theirs.Fields().ByNumber(n).Name())
		}
	}
}

// partOf are messages that are only received, of which we read a part.
var partOf = map[string]bool{"BlockStoragePolicy": true, "ErasureCodingSchema": true, "FileEncryptionInfo": true}

func number(v protoreflect.Value) any {
	if e, ok := v.Interface().(protoreflect.EnumNumber); ok {
		return int32(e)
	}
	return v.Interface()
}

// flat makes one of the naming habits of Hadoop's files.
func flat(name protoreflect.Name) string {
	s := strings.ToLower(strings.ReplaceAll(string(name), "_", ""))
	return strings.TrimSuffix(s, "proto")
}

// wireKind joins kinds with one encoding of the values that are sent.
func wireKind(k protoreflect.Kind) protoreflect.Kind {
	if k == protoreflect.EnumKind {
		return protoreflect.Uint32Kind
	}
	return k
}

func compareEnums(t *testing.T, ours protoreflect.EnumDescriptors) (compared int) {
	for i := range ours.Len() {
		e := ours.Get(i)
		t.Run(string(localName(e)), func(t *testing.T) {
			theirs, ok := findHadoop(localName(e)).(protoreflect.EnumDescriptor)
			require.True(t, ok, "Hadoop has no such enumeration")
			compared++
			for j := range e.Values().Len() {
				v := e.Values().Get(j)
				w := theirs.Values().ByNumber(v.Number())
				if w == nil {
					require.True(t, newer[string(v.Name())], "%s: Hadoop has no value %d", v.Name(), v.Number())
					continue
				}
				ours, theirs := flat(v.Name()), flat(w.Name())
				require.True(t, strings.HasSuffix(ours, theirs) || strings.HasSuffix(theirs, ours), "%s is %s", v.Name(), w.Name())
			}
		})
	}
	return compared
}

// hadoopMessage makes an empty message of Hadoop's.
func hadoopMessage(t testing.TB, name protoreflect.FullName) protoreflect.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
	require.NoError(t, err)
	return kind.New()
}

func set(m protoreflect.Message, field protoreflect.Name, v any) {
	m.Set(m.Descriptor().Fields().ByName(field), protoreflect.ValueOf(v))
}
