package hadoop;

import com.sun.management.OperatingSystemMXBean;
import engine.Serve;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/**
 * Hadoop's own client. First comes {@code connect CONFDIR [name=value]...}; then
 *
 * <pre>
 * put PATH TEXT REPLICATION               writes a file
 * cat PATH                                its bytes
 * checksum PATH                           that of the whole file, as text
 * write PATH MIB SLICE REPLICATION SYNC   measures the writing of a file in slices of bytes
 * read PATH MIB SLICE                     measures reading
 * commit DIR N WRITERS REPLICATION SYNC   measures N times create, 1 KiB, close, rename over
 * stat PATH N                             measures getFileStatus
 * </pre>
 *
 * SYNC is whether DataNodes fsync each block at its end (CreateFlag.SYNC_BLOCK), true or false.
 *
 * A measurement is one line of JSON: wall and CPU seconds of this process, and for single calls their p50 and p99 in milliseconds.
 */
public final class HadoopEngine {
    private static final OperatingSystemMXBean OS = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final long BLOCK = 128L << 20;

    private static DistributedFileSystem fs;

    private HadoopEngine() {}

    public static void main(String[] args) throws Exception {
        Map<String, Serve.Command> commands = new TreeMap<>();
        commands.put("version", w -> bytes(org.apache.hadoop.util.VersionInfo.getVersion()));
        commands.put("connect", HadoopEngine::connect);
        commands.put("put", w -> {
            try (FSDataOutputStream out = fs.create(new Path(w[0]), false, 4096, Short.parseShort(w[2]), BLOCK)) {
                out.write(bytes(w[1]));
            }
            return new byte[0];
        });
        commands.put("cat", w -> {
            try (FSDataInputStream in = fs.open(new Path(w[0]))) {
                return in.readAllBytes();
            }
        });
        commands.put("checksum", w -> bytes(String.valueOf(fs.getFileChecksum(new Path(w[0])))));
        commands.put("write", w -> measured(1, i -> write(w[0], Integer.parseInt(w[1]), Integer.parseInt(w[2]), Short.parseShort(w[3]), Boolean.parseBoolean(w[4]))));
        commands.put("read", w -> measured(1, i -> read(w[0], Integer.parseInt(w[1]), Integer.parseInt(w[2]))));
        commands.put("commit", HadoopEngine::commits);
        commands.put("stat", w -> measured(Integer.parseInt(w[1]), i -> fs.getFileStatus(new Path(w[0]))));
        Serve.serve(commands);
    }

    private static byte[] connect(String[] w) throws Exception {
        Configuration conf = new Configuration();
        conf.addResource(new Path(new File(w[0], "core-site.xml").toURI()));
        conf.addResource(new Path(new File(w[0], "hdfs-site.xml").toURI()));
        for (int i = 1; i < w.length; i++) {
            int at = w[i].indexOf('=');
            conf.set(w[i].substring(0, at), w[i].substring(at + 1));
        }
        fs = (DistributedFileSystem) FileSystem.newInstance(conf);
        return bytes(fs.getUri().toString());
    }

    private static FSDataOutputStream create(Path path, boolean overwrite, short replication, boolean sync) throws Exception {
        EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.CREATE);
        if (overwrite) {
            flags.add(CreateFlag.OVERWRITE);
        }
        if (sync) {
            flags.add(CreateFlag.SYNC_BLOCK);
        }
        return fs.create(path, FsPermission.getFileDefault(), flags, 4096, replication, BLOCK, null);
    }

    private static void write(String name, int mib, int slice, short replication, boolean sync) throws Exception {
        byte[] b = new byte[slice];
        new Random(1).nextBytes(b);
        try (FSDataOutputStream out = create(new Path(name), true, replication, sync)) {
            for (long left = (long) mib << 20; left > 0; left -= slice) {
                out.write(b, 0, (int) Math.min(slice, left));
            }
        }
    }

    private static void read(String name, int mib, int slice) throws Exception {
        byte[] b = new byte[slice];
        long left = (long) mib << 20;
        try (FSDataInputStream in = fs.open(new Path(name))) {
            for (int k; left > 0 && (k = in.read(b)) > 0; left -= k) {
                // the bytes are not looked at
            }
        }
        if (left > 0) {
            throw new IllegalStateException(left + " bytes are missing");
        }
    }

    private static byte[] commits(String[] w) throws Exception {
        int n = Integer.parseInt(w[1]);
        short replication = Short.parseShort(w[3]);
        boolean sync = Boolean.parseBoolean(w[4]);
        Path dir = new Path(w[0]);
        fs.mkdirs(dir);
        byte[] content = new byte[1024];
        return measured(n, Integer.parseInt(w[2]), i -> {
            Path tmp = new Path(dir, "tmp-" + i);
            try (FSDataOutputStream out = create(tmp, false, replication, sync)) {
                out.write(content);
            }
            fs.rename(tmp, new Path(dir, "f" + i), Options.Rename.OVERWRITE);
        });
    }

    private interface Action {
        void run(int i) throws Exception;
    }

    private static byte[] measured(int n, Action a) throws Exception {
        return measured(n, 1, a);
    }

    private static byte[] measured(int n, int threads, Action a) throws Exception {
        long[] taken = new long[n];
        AtomicInteger next = new AtomicInteger();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<?>> all = new ArrayList<>();
        long wall = System.nanoTime();
        long cpu = OS.getProcessCpuTime();
        for (int t = 0; t < threads; t++) {
            all.add(pool.submit(() -> {
                for (int i; (i = next.getAndIncrement()) < n; ) {
                    long s = System.nanoTime();
                    a.run(i);
                    taken[i] = System.nanoTime() - s;
                }
                return null;
            }));
        }
        for (Future<?> f : all) {
            f.get();
        }
        wall = System.nanoTime() - wall;
        cpu = OS.getProcessCpuTime() - cpu;
        pool.shutdown();
        Arrays.sort(taken);
        return bytes(String.format(Locale.ROOT, "{\"wall\":%.4f,\"cpu\":%.4f,\"p50\":%.3f,\"p99\":%.3f}",
                wall / 1e9, cpu / 1e9, taken[n / 2] / 1e6, taken[(int) (n * 0.99)] / 1e6));
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }
}
