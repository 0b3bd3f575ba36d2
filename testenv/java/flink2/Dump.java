package flink;

import static flink.Json.obj;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.MasterState;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.checkpoint.channel.ResultSubpartitionInfo;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.state.AbstractChannelStateHandle;
import org.apache.flink.runtime.state.AbstractMergedChannelStateHandle;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle.HandleAndLocalPath;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.InputChannelStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupsSavepointStateHandle;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.MergedInputChannelStateHandle;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.StateObject;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateBackendHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateHandleStreamImpl;
import org.apache.flink.runtime.state.changelog.StateChange;
import org.apache.flink.runtime.state.changelog.inmemory.InMemoryChangelogStateHandle;
import org.apache.flink.runtime.state.filemerging.EmptyFileMergingOperatorStreamStateHandle;
import org.apache.flink.runtime.state.filemerging.EmptySegmentFileStateHandle;
import org.apache.flink.runtime.state.filemerging.FileMergingOperatorStreamStateHandle;
import org.apache.flink.runtime.state.filemerging.SegmentFileStateHandle;
import org.apache.flink.runtime.state.filesystem.AbstractFsCheckpointStorageAccess;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.runtime.state.filesystem.FsCompletedCheckpointStorageLocation;
import org.apache.flink.runtime.state.filesystem.RelativeFileStateHandle;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;

/**
 * Canonical JSON of a _metadata file as the real Flink reads it. Operators, master states and every list keep the order of
 * the file; subtasks are sorted by index and operator-state names by UTF-8 bytes (Flink holds both in a HashMap).
 */
final class Dump {
    private static final int HEX_LIMIT = 64;

    /** What was read, and what of the file was left over. */
    static final class Loaded {
        String pointer;
        byte[] file;
        int version;
        int trailing;
        CheckpointMetadata meta;
    }

    /** The real read path: resolveCheckpointPointer, open, Checkpoints.loadCheckpointMetadata (with the pointer as context). */
    static Loaded load(String pointer) throws IOException {
        FsCompletedCheckpointStorageLocation loc = AbstractFsCheckpointStorageAccess.resolveCheckpointPointer(pointer);
        Loaded l = new Loaded();
        l.pointer = pointer;
        try (InputStream in = loc.getMetadataHandle().openInputStream()) {
            l.file = in.readAllBytes();
        }
        parse(l);
        return l;
    }

    static void parse(Loaded l) throws IOException {
        ByteArrayInputStream bytes = new ByteArrayInputStream(l.file);
        DataInputStream in = new DataInputStream(bytes);
        l.meta = Checkpoints.loadCheckpointMetadata(in, Dump.class.getClassLoader(), l.pointer);
        l.trailing = bytes.available();
        l.version = new DataInputStream(new ByteArrayInputStream(l.file, 4, 4)).readInt();
    }

    /** Ids that a second read of the same bytes gives again; any other id was made up at random by the reader. */
    private final Set<String> stableIds = new HashSet<>();

    static Json.Obj dump(String pointer) throws IOException {
        Loaded l = load(pointer);
        Loaded again = new Loaded();
        again.pointer = pointer;
        again.file = l.file;
        parse(again);
        Dump d = new Dump();
        d.collectIds(again.meta);
        return d.metadata(l);
    }

    private Json.Obj metadata(Loaded l) throws IOException {
        CheckpointMetadata m = l.meta;
        List<Object> masters = new ArrayList<>();
        for (MasterState s : m.getMasterStates()) {
            masters.add(obj().with("name", s.name()).with("version", s.version()).with("bytes", blob(s.bytes())));
        }
        List<Object> operators = new ArrayList<>();
        long state = 0;
        long checkpointed = 0;
        for (OperatorState op : m.getOperatorStates()) {
            operators.add(operator(op));
            state += op.getStateSize();
            checkpointed += op.getCheckpointedSize();
        }
        return obj()
                .with("format", "flink-oracle-dump/1")
                .with("version", l.version)
                .with("fileSize", l.file.length)
                .with("fileSha256", Json.sha256(l.file))
                .with("trailingBytes", l.trailing)
                .with("checkpointId", m.getCheckpointId())
                .with("stateSize", state)
                .with("checkpointedSize", checkpointed)
                .with("masterStates", masters)
                .with("operators", operators)
                .with("properties", properties(m.getCheckpointProperties()));
    }

    // ---------------------------------------------------------------- operators

    private Json.Obj operator(OperatorState op) {
        List<Object> subtasks = new ArrayList<>();
        for (Map.Entry<Integer, OperatorSubtaskState> e : new TreeMap<>(op.getSubtaskStates()).entrySet()) {
            OperatorSubtaskState s = e.getValue();
            Json.Obj o = obj().with("index", e.getKey()).with("finished", s.isFinished());
            if (!s.isFinished()) {
                o.with("stateSize", s.getStateSize())
                        .with("checkpointedSize", s.getCheckpointedSize())
                        .with("managedOperatorState", single(list(s.getManagedOperatorState(), h -> operatorHandle((OperatorStateHandle) h))))
                        .with("rawOperatorState", single(list(s.getRawOperatorState(), h -> operatorHandle((OperatorStateHandle) h))))
                        .with("managedKeyedState", single(list(s.getManagedKeyedState(), h -> keyedHandle((KeyedStateHandle) h))))
                        .with("rawKeyedState", single(list(s.getRawKeyedState(), h -> keyedHandle((KeyedStateHandle) h))))
                        .with("inputChannelState", list(s.getInputChannelState(), this::channelHandle))
                        .with("resultSubpartitionState", list(s.getResultSubpartitionState(), this::channelHandle));
            }
            subtasks.add(o);
        }
        return obj()
                .with("id", op.getOperatorID().toHexString())
                .with("name", op.getOperatorName().orElse(null))
                .with("uid", op.getOperatorUid().orElse(null))
                .with("parallelism", op.getParallelism())
                .with("maxParallelism", op.getMaxParallelism())
                .with("fullyFinished", op.isFullyFinished())
                .with("stateSize", op.getStateSize())
                .with("checkpointedSize", op.getCheckpointedSize())
                .with("coordinatorState", streamHandle(op.getCoordinatorState()))
                .with("subtasks", subtasks);
    }

    private interface Printer {
        Object print(StateObject o);
    }

    private static List<Object> list(Collection<? extends StateObject> in, Printer p) {
        List<Object> out = new ArrayList<>();
        for (StateObject o : in) {
            out.add(p.print(o));
        }
        return out;
    }

    private static Object single(List<Object> l) {
        return l.isEmpty() ? null : l.size() == 1 ? l.get(0) : l;
    }

    private Object operatorHandle(OperatorStateHandle h) {
        List<Object> states = new ArrayList<>();
        Map<String, OperatorStateHandle.StateMetaInfo> sorted = new TreeMap<>(Json.UTF8_ORDER);
        sorted.putAll(h.getStateNameToPartitionOffsets());
        for (Map.Entry<String, OperatorStateHandle.StateMetaInfo> e : sorted.entrySet()) {
            states.add(obj().with("name", e.getKey())
                    .with("mode", e.getValue().getDistributionMode().name())
                    .with("offsets", e.getValue().getOffsets()));
        }
        Json.Obj o = obj();
        if (h instanceof FileMergingOperatorStreamStateHandle) {
            FileMergingOperatorStreamStateHandle f = (FileMergingOperatorStreamStateHandle) h;
            o.with("type", "fileMergingPartitionable")
                    .with("taskOwnedDir", f.getTaskOwnedDirHandle().getDirectory().toString())
                    .with("sharedDir", f.getSharedDirHandle().getDirectory().toString())
                    .with("empty", h instanceof EmptyFileMergingOperatorStreamStateHandle);
        } else {
            o.with("type", "partitionable");
        }
        return o.with("states", states).with("delegate", streamHandle(h.getDelegateStateHandle()));
    }

    // ---------------------------------------------------------------- keyed state

    private Json.Obj keyedHandle(KeyedStateHandle h) {
        Json.Obj o = obj();
        if (h instanceof KeyGroupsStateHandle) {
            keyGroups(o, (KeyGroupsStateHandle) h);
            if (!(h instanceof KeyGroupsSavepointStateHandle)) {
                id(o, h);
            }
        } else if (h instanceof IncrementalRemoteKeyedStateHandle) {
            IncrementalRemoteKeyedStateHandle i = (IncrementalRemoteKeyedStateHandle) h;
            o.with("type", "incremental").with("checkpointId", i.getCheckpointId()).with("backendId", i.getBackendIdentifier().toString());
            range(o, i.getKeyGroupRange());
            o.with("checkpointedSize", i.getCheckpointedSize())
                    .with("meta", streamHandle(i.getMetaDataStateHandle()))
                    .with("shared", paths(i.getSharedState()))
                    .with("private", paths(i.getPrivateState()));
            id(o, h);
        } else if (h instanceof ChangelogStateBackendHandle) {
            ChangelogStateBackendHandle c = (ChangelogStateBackendHandle) h;
            o.with("type", "changelog");
            range(o, c.getKeyGroupRange());
            o.with("checkpointedSize", c.getCheckpointedSize())
                    .with("materialized", list(c.getMaterializedStateHandles(), x -> keyedHandle((KeyedStateHandle) x)))
                    .with("nonMaterialized", list(c.getNonMaterializedStateHandles(), x -> keyedHandle((KeyedStateHandle) x)))
                    .with("materializationId", c.getMaterializationID())
                    .with("checkpointId", c.getCheckpointId());
            id(o, h);
        } else if (h instanceof InMemoryChangelogStateHandle) {
            InMemoryChangelogStateHandle c = (InMemoryChangelogStateHandle) h;
            o.with("type", "changelogBytes");
            range(o, c.getKeyGroupRange());
            List<Object> changes = new ArrayList<>();
            for (StateChange s : c.getChanges()) {
                changes.add(obj().with("keyGroup", s.getKeyGroup()).with("data", blob(s.getChange())));
            }
            o.with("from", c.getFrom()).with("to", c.getTo()).with("changes", changes);
            id(o, h);
        } else if (h instanceof ChangelogStateHandleStreamImpl) {
            ChangelogStateHandleStreamImpl c = (ChangelogStateHandleStreamImpl) h;
            o.with("type", "changelogFile");
            range(o, c.getKeyGroupRange());
            List<Object> parts = new ArrayList<>();
            for (Tuple2<StreamStateHandle, Long> t : c.getHandlesAndOffsets()) {
                parts.add(obj().with("offset", t.f1).with("handle", streamHandle(t.f0)));
            }
            o.with("handles", parts)
                    .with("size", c.getStateSize())
                    .with("checkpointedSize", c.getCheckpointedSize())
                    .with("storageIdentifier", c.getStorageIdentifier());
            id(o, h);
        } else {
            o.with("type", "?").with("class", h == null ? null : h.getClass().getName());
        }
        return o;
    }

    private void keyGroups(Json.Obj o, KeyGroupsStateHandle k) {
        o.with("type", k instanceof KeyGroupsSavepointStateHandle ? "savepointKeyGroups" : "keyGroups");
        range(o, k.getKeyGroupRange());
        long[] offsets = new long[k.getKeyGroupRange().getNumberOfKeyGroups()];
        int n = 0;
        for (int g : k.getKeyGroupRange()) {
            offsets[n++] = k.getOffsetForKeyGroup(g);
        }
        o.with("offsets", offsets).with("delegate", streamHandle(k.getDelegateStateHandle()));
    }

    private static void range(Json.Obj o, KeyGroupRange r) {
        o.with("keyGroupStart", r.getStartKeyGroup()).with("keyGroupCount", r.getNumberOfKeyGroups());
    }

    private List<Object> paths(List<HandleAndLocalPath> in) {
        List<Object> out = new ArrayList<>();
        for (HandleAndLocalPath p : in) {
            out.add(obj().with("localPath", p.getLocalPath()).with("handle", streamHandle(p.getHandle())));
        }
        return out;
    }

    /** A null id means: not in the file, Flink's reader invents a random one. */
    private void id(Json.Obj o, KeyedStateHandle h) {
        String id = h.getStateHandleId().getKeyString();
        o.with("stateHandleId", stableIds.contains(id) ? id : null);
    }

    private void collectIds(CheckpointMetadata m) {
        for (OperatorState op : m.getOperatorStates()) {
            for (OperatorSubtaskState s : op.getStates()) {
                s.getManagedKeyedState().forEach(this::collectIds);
                s.getRawKeyedState().forEach(this::collectIds);
            }
        }
    }

    private void collectIds(KeyedStateHandle h) {
        stableIds.add(h.getStateHandleId().getKeyString());
        if (h instanceof ChangelogStateBackendHandle) {
            ((ChangelogStateBackendHandle) h).getMaterializedStateHandles().forEach(this::collectIds);
            ((ChangelogStateBackendHandle) h).getNonMaterializedStateHandles().forEach(this::collectIds);
        }
    }

    // ---------------------------------------------------------------- channel state

    private Json.Obj channelHandle(StateObject h) {
        Json.Obj o = obj();
        if (h instanceof AbstractChannelStateHandle) {
            AbstractChannelStateHandle<?> c = (AbstractChannelStateHandle<?>) h;
            o.with("type", c instanceof InputChannelStateHandle ? "inputChannel" : "resultSubpartition").with("subtaskIndex", c.getSubtaskIndex());
            info(o, c.getInfo());
            o.with("offsets", c.getOffsets()).with("size", c.getStateSize()).with("delegate", streamHandle(c.getDelegate()));
        } else if (h instanceof AbstractMergedChannelStateHandle) {
            AbstractMergedChannelStateHandle<?, ?> m = (AbstractMergedChannelStateHandle<?, ?>) h;
            o.with("type", m instanceof MergedInputChannelStateHandle ? "mergedInputChannel" : "mergedResultSubpartition")
                    .with("subtaskIndex", m.getSubtaskIndex())
                    .with("size", m.getStateSize())
                    .with("delegate", streamHandle(m.getDelegate()))
                    .with("serializedOffsets", blob(m.getSerializedChannelOffsets()));
            List<Object> channels = new ArrayList<>();
            for (Object x : (Collection<?>) call(AbstractMergedChannelStateHandle.class, m, "getUnmergedHandles")) {
                AbstractChannelStateHandle<?> c = (AbstractChannelStateHandle<?>) x;
                Json.Obj e = obj();
                info(e, c.getInfo());
                channels.add(e.with("size", c.getStateSize()).with("offsets", c.getOffsets()));
            }
            o.with("channels", channels);
        } else {
            o.with("type", "?").with("class", h.getClass().getName());
        }
        return o;
    }

    private static void info(Json.Obj o, Object info) {
        if (info instanceof InputChannelInfo) {
            o.with("gate", ((InputChannelInfo) info).getGateIdx()).with("channel", ((InputChannelInfo) info).getInputChannelIdx());
        } else {
            o.with("partition", ((ResultSubpartitionInfo) info).getPartitionIdx())
                    .with("subpartition", ((ResultSubpartitionInfo) info).getSubPartitionIdx());
        }
    }

    // ---------------------------------------------------------------- stream handles

    /** Handles as the stream tools print them too. A relative handle's resolved path is left out: it depends on where the file lies. */
    Json.Obj streamHandle(StreamStateHandle h) {
        if (h == null) {
            return null;
        }
        Json.Obj o = obj();
        if (h instanceof RelativeFileStateHandle) {
            o.with("type", "relativeFile").with("relativePath", ((RelativeFileStateHandle) h).getRelativePath()).with("size", h.getStateSize());
        } else if (h instanceof FileStateHandle) {
            o.with("type", "file").with("path", ((FileStateHandle) h).getFilePath().toString()).with("size", h.getStateSize())
                    .with("physicalId", h.getStreamStateHandleID().getKeyString());
        } else if (h instanceof EmptySegmentFileStateHandle) {
            o.with("type", "emptySegment");
        } else if (h instanceof SegmentFileStateHandle) {
            SegmentFileStateHandle s = (SegmentFileStateHandle) h;
            o.with("type", "segment").with("path", s.getFilePath().toString()).with("startPos", s.getStartPos()).with("size", s.getStateSize())
                    .with("scope", s.getScope().name()).with("logicalFileId", s.getLogicalFileId().getKeyString())
                    .with("physicalId", s.getStreamStateHandleID().getKeyString());
        } else if (h instanceof ByteStreamStateHandle) {
            ByteStreamStateHandle b = (ByteStreamStateHandle) h;
            o.with("type", "bytes").with("name", b.getHandleName()).with("data", blob(b.getData()));
        } else if (h instanceof KeyGroupsStateHandle) {
            keyGroups(o, (KeyGroupsStateHandle) h);
        } else {
            o.with("type", "?").with("class", h.getClass().getName());
        }
        return o;
    }

    // ---------------------------------------------------------------- properties (java-serialised)

    private static Json.Obj properties(CheckpointProperties p) throws IOException {
        if (p == null) {
            return null;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new ObjectOutputStream(bytes).writeObject(p);
        Json.Obj o = fields(p);
        return o.with("serializedLength", bytes.size()).with("serializedSha256", Json.sha256(bytes.toByteArray()));
    }

    /** All instance fields in the order of their names, which is the order of Java serialization within each kind. */
    private static Json.Obj fields(Object x) {
        Json.Obj o = obj().with("class", x.getClass().getName());
        Field[] fs = x.getClass().getDeclaredFields();
        Arrays.sort(fs, (a, b) -> a.getName().compareTo(b.getName()));
        for (Field f : fs) {
            if (Modifier.isStatic(f.getModifiers())) {
                continue;
            }
            try {
                f.setAccessible(true);
                Object v = f.get(x);
                boolean plain = v == null || v instanceof Boolean || v instanceof Number || v instanceof String;
                o.with(f.getName(), plain ? v : v instanceof Enum ? ((Enum<?>) v).name() : fields(v));
            } catch (IllegalAccessException e) {
                throw new IllegalStateException(e);
            }
        }
        return o;
    }

    private static Object call(Class<?> c, Object target, String method) {
        try {
            Method m = c.getDeclaredMethod(method);
            m.setAccessible(true);
            return m.invoke(target);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Json.Obj blob(byte[] b) {
        return Json.blob(b, HEX_LIMIT);
    }
}
