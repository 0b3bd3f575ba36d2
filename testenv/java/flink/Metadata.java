package flink;

import static flink.Json.obj;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.api.common.JobID;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.checkpoint.metadata.MetadataSerializers;
import org.apache.flink.runtime.state.CheckpointMetadataOutputStream;
import org.apache.flink.runtime.state.CheckpointStorageLocation;
import org.apache.flink.runtime.state.filesystem.AbstractFsCheckpointStorageAccess;
import org.apache.flink.runtime.state.filesystem.FsCheckpointStorageAccess;
import org.apache.flink.runtime.state.storage.FileSystemCheckpointStorage;

/** Reads, writes and disposes by Flink's own classes. Only calls that are the same from Flink 1.20 to 2.3. */
final class Metadata {
    private Metadata() {}

    private static byte[] read(String pointer) throws IOException {
        try (InputStream in = AbstractFsCheckpointStorageAccess.resolveCheckpointPointer(pointer).getMetadataHandle().openInputStream()) {
            return in.readAllBytes();
        }
    }

    private static CheckpointMetadata parse(byte[] file, String pointer) throws IOException {
        return Checkpoints.loadCheckpointMetadata(
                new DataInputStream(new ByteArrayInputStream(file)), Metadata.class.getClassLoader(), pointer);
    }

    private static byte[] write(CheckpointMetadata m, int version) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Checkpoints.storeCheckpointMetadata(m, new DataOutputStream(out), MetadataSerializers.getSerializer(version));
        return out.toByteArray();
    }

    /** {@code rewrite POINTER [VERSION]}: the bytes that this Flink writes of what it reads; in the version of the file by default. */
    static byte[] rewrite(String[] words) throws IOException {
        byte[] file = read(words[0]);
        int version = words.length > 1 ? Integer.parseInt(words[1]) : new DataInputStream(new ByteArrayInputStream(file, 4, 4)).readInt();
        return write(parse(file, words[0]), version);
    }

    /** {@code dispose POINTER}: as the dispatcher does for "savepoint dispose". */
    static byte[] dispose(String[] words) throws Exception {
        Checkpoints.disposeSavepoint(
                words[0], new FileSystemCheckpointStorage("file:///tmp/hdfsckpt-flink-unused"), Metadata.class.getClassLoader());
        return new byte[0];
    }

    /**
     * {@code bench POINTER DIR ROUNDS}: milliseconds of each round as JSON, after as many to warm up: parse and write in memory,
     * and through the streams that Flink itself uses, in a directory of which nothing is left.
     */
    static byte[] bench(String[] words) throws Exception {
        byte[] file = read(words[0]);
        int rounds = Integer.parseInt(words[2]);
        CheckpointMetadata m = parse(file, words[0]);
        int version = new DataInputStream(new ByteArrayInputStream(file, 4, 4)).readInt();
        FsCheckpointStorageAccess access =
                new FsCheckpointStorageAccess(new org.apache.flink.core.fs.Path(words[1]), null, new JobID(1, 2), 20480, 20480);
        access.initializeBaseLocationsForCheckpoint();
        long[] next = {100};
        Json.Obj o = obj();
        o.with("parse", times(rounds, () -> parse(file, words[0])));
        o.with("write", times(rounds, () -> write(m, version)));
        o.with("read_stream", times(1, () -> {
            try (InputStream in = AbstractFsCheckpointStorageAccess.resolveCheckpointPointer(words[0]).getMetadataHandle().openInputStream()) {
                Checkpoints.loadCheckpointMetadata(new DataInputStream(in), Metadata.class.getClassLoader(), words[0]);
            }
        }));
        o.with("write_stream", times(1, () -> {
            CheckpointStorageLocation l = access.initializeLocationForCheckpoint(next[0]++);
            try (CheckpointMetadataOutputStream out = l.createMetadataOutputStream()) {
                Checkpoints.storeCheckpointMetadata(m, out);
                out.closeAndFinalizeCheckpoint();
            }
            l.disposeOnFailure();
        }));
        return Json.write(o).getBytes(StandardCharsets.UTF_8);
    }

    private interface Action {
        void run() throws Exception;
    }

    private static List<Object> times(int rounds, Action a) throws Exception {
        for (int i = 0; i < rounds; i++) {
            a.run();
        }
        List<Object> ms = new java.util.ArrayList<>();
        for (int i = 0; i < rounds; i++) {
            System.gc();
            long t = System.nanoTime();
            a.run();
            ms.add((System.nanoTime() - t) / 1e6);
        }
        return ms;
    }
}
