package flink;

import static flink.Json.obj;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * A real job in a MiniCluster that processes the numbers 0 to N-1 and knows at its end whether each was processed exactly once:
 * what was counted before a snapshot is only in the snapshot's state.
 *
 * <pre>
 * job DIR [name=value]...
 *   numbers=4000 rate=1000 (a second) keys=40 parallelism=2
 *   checkpoints=N     wait for N, take the savepoints, then cancel; without it the job runs to its end
 *   savepoints=CANONICAL,NATIVE
 *   restore=URL       start from this snapshot
 *   conf.KEY=VALUE    of Flink
 * </pre>
 *
 * The answer is JSON: job_id, checkpoint (newest, when it was cancelled), savepoints, and at its end "keyed" and "listed": how many
 * numbers the keyed and the operator state have seen.
 */
final class Job {
    /** By key, what the keyed state holds; by subtask, what the operator state holds. A MiniCluster is in this process. */
    private static final Map<Long, Long> KEYED = new ConcurrentHashMap<>();
    private static final AtomicLong LISTED = new AtomicLong();

    private Job() {}

    static byte[] run(String[] words) throws Exception {
        Map<String, String> options = new HashMap<>();
        Map<String, String> conf = new HashMap<>();
        Path dir = Paths.get(words[0]);
        conf.put("execution.checkpointing.dir", "file://" + dir + "/checkpoints");
        conf.put("execution.checkpointing.interval", "300ms");
        conf.put("execution.checkpointing.num-retained", "2");
        conf.put("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        conf.put("taskmanager.memory.managed.size", "64mb");
        conf.put("taskmanager.memory.network.min", "16mb");
        conf.put("taskmanager.memory.network.max", "16mb");
        conf.put("taskmanager.numberOfTaskSlots", "4");
        conf.put("rest.port", "0");
        conf.put("rest.bind-port", "0");
        for (int i = 1; i < words.length; i++) {
            int at = words[i].indexOf('=');
            String name = words[i].substring(0, at);
            String value = words[i].substring(at + 1);
            if (name.startsWith("conf.")) {
                conf.put(name.substring("conf.".length()), value);
            } else {
                options.put(name, value);
            }
        }
        if (options.containsKey("restore")) {
            conf.put("execution.state-recovery.path", options.get("restore"));
        }
        KEYED.clear();
        LISTED.set(0);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(
                Integer.parseInt(options.getOrDefault("parallelism", "2")), Configuration.fromMap(conf));
        env.setMaxParallelism(8);
        topology(env, options);
        JobClient job = env.executeAsync("counting");
        Json.Obj report = obj().with("job_id", job.getJobID().toHexString());
        try {
            if (options.containsKey("checkpoints")) {
                interrupted(job, dir, options, report);
            } else {
                await(job);
            }
        } catch (Exception e) {
            try {
                job.cancel().get(30, TimeUnit.SECONDS);
            } catch (Exception ended) {
                // what is thrown below says more
            }
            throw e;
        }
        report.with("keyed", KEYED.values().stream().mapToLong(Long::longValue).sum()).with("listed", LISTED.get());
        return Json.write(report).getBytes(StandardCharsets.UTF_8);
    }

    private static void interrupted(JobClient job, Path dir, Map<String, String> options, Json.Obj report) throws Exception {
        Path checkpoints = dir.resolve("checkpoints").resolve(job.getJobID().toHexString());
        awaitCheckpoint(job, checkpoints, Integer.parseInt(options.get("checkpoints")));
        List<Object> savepoints = new ArrayList<>();
        for (String format : options.getOrDefault("savepoints", "").split(",")) {
            if (!format.isEmpty()) {
                savepoints.add(job.triggerSavepoint("file://" + dir + "/savepoints", SavepointFormatType.valueOf(format)).get(60, TimeUnit.SECONDS));
            }
        }
        report.with("savepoints", savepoints);
        job.cancel().get(60, TimeUnit.SECONDS);
        end(job);
        report.with("checkpoint", checkpoints.resolve("chk-" + newest(checkpoints)).toString());
    }

    private static void topology(StreamExecutionEnvironment env, Map<String, String> options) {
        GeneratorFunction<Long, Long> identity = x -> x;
        long numbers = Long.parseLong(options.getOrDefault("numbers", "4000"));
        long keys = Long.parseLong(options.getOrDefault("keys", "40"));
        double rate = Double.parseDouble(options.getOrDefault("rate", "1000"));
        DataStream<Long> source = env.fromSource(
                        new DataGeneratorSource<>(identity, numbers, RateLimiterStrategy.perSecond(rate), Types.LONG),
                        WatermarkStrategy.noWatermarks(), "numbers")
                .uid("numbers-uid");
        source.keyBy(x -> x % keys).process(new Seen(keys)).name("seen \u00e9\u6587").uid("seen-uid")
                .rebalance().map(new Listed()).name("listed").uid("listed-uid")
                .sinkTo(new DiscardingSink<>()).name("sink").uid("sink-uid");
    }

    /** Keyed value, list and map state. */
    private static final class Seen extends KeyedProcessFunction<Long, Long, Long> {
        private final long keys;
        private transient ValueState<Long> count;
        private transient ListState<Long> last;
        private transient MapState<Long, Boolean> seen;

        Seen(long keys) {
            this.keys = keys;
        }

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            last = getRuntimeContext().getListState(new ListStateDescriptor<>("last", Types.LONG));
            seen = getRuntimeContext().getMapState(new MapStateDescriptor<>("seen", Types.LONG, Types.BOOLEAN));
        }

        @Override
        public void processElement(Long x, Context ctx, Collector<Long> out) throws Exception {
            if (seen.contains(x)) {
                throw new IllegalStateException("number " + x + " was processed twice");
            }
            long n = count.value() == null ? 1 : count.value() + 1;
            long held = 0;
            for (Long k : seen.keys()) {
                if (k % keys != x % keys) {
                    throw new IllegalStateException("number " + k + " is not of key " + x % keys);
                }
                held++;
            }
            List<Long> before = new ArrayList<>();
            last.get().forEach(before::add);
            if (held != n - 1 || (n > 1 && (before.size() != 2 || before.get(1) != n - 1 || !seen.contains(before.get(0))))) {
                throw new IllegalStateException("key " + x % keys + ": count " + n + ", but " + held + " seen, and last " + before);
            }
            count.update(n);
            seen.put(x, true);
            last.update(List.of(x, n));
            KEYED.put(x % keys, n);
            out.collect(x);
        }
    }

    /** Split, union and broadcast operator state. */
    private static final class Listed extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        private transient ListState<Long> split;
        private transient ListState<String> union;
        private transient BroadcastState<String, Long> broadcast;
        private long n;

        @Override
        public Long map(Long x) {
            n++;
            return x;
        }

        @Override
        public void close() {
            LISTED.addAndGet(n);
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            split.update(List.of(n));
            union.update(List.of("u"));
            broadcast.put("b", 7L);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            split = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("split", Types.LONG));
            union = context.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>("union \u00e9", Types.STRING));
            broadcast = context.getOperatorStateStore().getBroadcastState(new MapStateDescriptor<>("broadcast", Types.STRING, Types.LONG));
            for (Long part : split.get()) {
                n += part;
            }
            if (context.isRestored() && (!"u".equals(union.get().iterator().next()) || broadcast.get("b") != 7L)) {
                throw new IllegalStateException("restored, but union or broadcast state is not what it was");
            }
        }
    }

    private static int newest(Path checkpoints) throws Exception {
        if (!Files.isDirectory(checkpoints)) {
            return 0;
        }
        try (Stream<Path> s = Files.list(checkpoints)) {
            return s.filter(p -> p.getFileName().toString().startsWith("chk-") && Files.exists(p.resolve("_metadata")))
                    .mapToInt(p -> Integer.parseInt(p.getFileName().toString().substring(4))).max().orElse(0);
        }
    }

    private static void awaitCheckpoint(JobClient job, Path checkpoints, int n) throws Exception {
        long end = System.currentTimeMillis() + 90_000;
        while (newest(checkpoints) < n) {
            if (System.currentTimeMillis() > end || job.getJobStatus().get().isTerminalState()) {
                throw new IllegalStateException("no checkpoint " + n + " within 90 s or before the end of the job");
            }
            Thread.sleep(20);
        }
    }

    /** The job's end, and why it failed if it did. */
    private static void await(JobClient job) throws Exception {
        job.getJobExecutionResult().get(120, TimeUnit.SECONDS);
    }

    private static void end(JobClient job) throws Exception {
        try {
            for (int i = 0; i < 600; i++) {
                JobStatus status = job.getJobStatus().get();
                if (status.isTerminalState()) {
                    return;
                }
                Thread.sleep(50);
            }
        } catch (IllegalStateException gone) {
            // the MiniCluster of this job has already shut down
        }
    }
}
