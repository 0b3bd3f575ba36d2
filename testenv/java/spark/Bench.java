package spark;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * {@code bench KIND ROOT [setting=value]...} measures a store of "keys" entries, of which "changed" change with each commit. Key:
 * row of one long, 16 bytes. Value: row of one binary column of 84 incompressible bytes, 104 bytes. A line for each figure:
 * its name and, separated by spaces, the milliseconds (or bytes) of each of "rounds", after "warmup" others. The store is left.
 *
 * <pre>
 * commit    open, puts, commit, total
 * load      of a snapshot and "deltas": load, again (cached)
 * snapshot  snapshot
 * heap      heap1, heap2 and heapN: bytes after a collection with 1, 2 and "cached" versions
 * </pre>
 */
final class Bench {
    private final String root;
    private final Map<String, String> settings;
    private final long keys;
    private final int changed;
    private final int deltas;
    private final int rounds;
    private final int warmup;
    private final int cached;
    private final boolean rocks;
    private final SplittableRandom random = new SplittableRandom(42);
    private final StringBuilder report = new StringBuilder();

    private Bench(String[] w) {
        root = w[1];
        settings = Stores.settings(w, 2);
        keys = number("keys", 100_000);
        changed = number("changed", 10_000);
        deltas = number("deltas", 0);
        rounds = number("rounds", 5);
        warmup = number("warmup", 3);
        cached = number("cached", 2);
        rocks = settings.containsKey("rocksdb");
        settings.put("maxBatchesToRetainInMemory", Integer.toString(cached));
        if (rocks) {
            settings.put("stateStore.rocksdb.changelogCheckpointing.enabled", "true");
        }
    }

    private int number(String name, int otherwise) {
        String s = settings.remove(name);
        return s == null ? otherwise : Integer.parseInt(s);
    }

    static byte[] run(String[] w) throws Exception {
        Bench b = new Bench(w);
        switch (w[0]) {
            case "commit" -> b.commit();
            case "load" -> b.load();
            case "snapshot" -> b.snapshot();
            case "heap" -> b.heap();
            default -> throw new IllegalArgumentException(w[0]);
        }
        return b.report.toString().getBytes(StandardCharsets.US_ASCII);
    }

    private Store open(boolean snapshots) throws Exception {
        settings.put("stateStore.minDeltasForSnapshot", snapshots ? (rocks ? "1" : "0") : Integer.toString(Integer.MAX_VALUE));
        return new Store(root, 0, 0, "default", settings);
    }

    private long fill(Store p) throws Exception {
        org.apache.spark.sql.execution.streaming.state.StateStore s = p.begin(0);
        for (long i = 0; i < keys; i++) {
            p.put(s, Store.row(key(i)), Store.row(value()));
        }
        return s.commit();
    }

    private void change(Store p, Object s) throws Exception {
        for (int i = 0; i < changed; i++) {
            p.put(s, Store.row(key(random.nextLong(keys))), Store.row(value()));
        }
    }

    private void commit() throws Exception {
        try (Store p = open(false)) {
            long v = fill(p);
            double[][] t = new double[4][rounds];
            for (int r = -warmup; r < rounds; r++) {
                long t0 = System.nanoTime();
                org.apache.spark.sql.execution.streaming.state.StateStore s = p.begin(v);
                long t1 = System.nanoTime();
                change(p, s);
                long t2 = System.nanoTime();
                v = s.commit();
                long t3 = System.nanoTime();
                if (r >= 0) {
                    t[0][r] = ms(t1 - t0);
                    t[1][r] = ms(t2 - t1);
                    t[2][r] = ms(t3 - t2);
                    t[3][r] = ms(t3 - t0);
                }
            }
            line("open", t[0]);
            line("puts", t[1]);
            line("commit", t[2]);
            line("total", t[3]);
        }
    }

    private void load() throws Exception {
        long v;
        try (Store p = open(true)) {
            v = fill(p);
            p.maintain();
        }
        try (Store p = open(false)) {
            for (int i = 0; i < deltas; i++) {
                org.apache.spark.sql.execution.streaming.state.StateStore s = p.begin(v);
                change(p, s);
                v = s.commit();
            }
        }
        double[] cold = new double[rounds];
        double[] again = new double[rounds];
        for (int r = -warmup; r < rounds; r++) {
            try (Store p = open(false)) {
                long t0 = System.nanoTime();
                org.apache.spark.sql.execution.streaming.state.StateStore s = p.begin(v);
                long t1 = System.nanoTime();
                s.abort();
                long t2 = System.nanoTime();
                org.apache.spark.sql.execution.streaming.state.StateStore s2 = p.begin(v);
                long t3 = System.nanoTime();
                s2.abort();
                if (r >= 0) {
                    cold[r] = ms(t1 - t0);
                    again[r] = ms(t3 - t2);
                }
            }
        }
        line("load", cold);
        line("again", again);
    }

    private void snapshot() throws Exception {
        try (Store p = open(true)) {
            long v = fill(p);
            double[] t = new double[rounds];
            for (int r = -warmup; r < rounds; r++) {
                if (rocks && r > -warmup) { // RocksDB queues a snapshot only with a commit
                    org.apache.spark.sql.execution.streaming.state.StateStore s = p.begin(v);
                    change(p, s);
                    v = s.commit();
                }
                long t0 = System.nanoTime();
                p.maintain();
                long t1 = System.nanoTime();
                if (r >= 0) {
                    t[r] = ms(t1 - t0);
                }
                File f = new File(root.replaceFirst("^file:/*", "/") + "/0/0/" + v + ".snapshot");
                if (!rocks && r < rounds - 1 && !f.delete()) {
                    throw new IllegalStateException(f + " was not made");
                }
            }
            line("snapshot", t);
        }
    }

    private void heap() throws Exception {
        long before = usedHeap();
        try (Store p = open(false)) {
            long v = fill(p);
            for (int n = 1; n <= cached; n++) {
                if (n == 1 || n == 2 || n == cached) {
                    line(n == cached ? "heapN" : "heap" + n, new double[] {usedHeap() - before});
                }
                org.apache.spark.sql.execution.streaming.state.StateStore s = p.begin(v);
                change(p, s);
                v = s.commit();
            }
        }
    }

    private static long usedHeap() throws InterruptedException {
        for (int i = 0; i < 4; i++) {
            System.gc();
            Thread.sleep(100);
        }
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    private static byte[] key(long i) {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(0).putLong(i).array();
    }

    private byte[] value() {
        ByteBuffer b = ByteBuffer.allocate(16 + 88).order(ByteOrder.LITTLE_ENDIAN);
        b.putLong(0).putLong(16L << 32 | 84);
        byte[] data = new byte[84];
        random.nextBytes(data);
        return b.put(data).array();
    }

    private static double ms(long nanos) {
        return nanos / 1e6;
    }

    private void line(String name, double[] figures) {
        report.append(name);
        for (double f : figures) {
            report.append(String.format(java.util.Locale.ROOT, " %.3f", f));
        }
        report.append('\n');
    }
}
