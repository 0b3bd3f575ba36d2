package spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.sum;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.Trigger;

/**
 * {@code query KIND DIR [setting=value]...}: a streaming query (aggregation, deduplication or join) over the JSON files of
 * DIR/left (and DIR/right), one file a batch in the order of their times, with its checkpoint in DIR/checkpoint. It ends when all
 * files are processed. What each batch has put out is in DIR/output/BATCH, sorted; a batch that runs again replaces its own.
 * Input rows: {"key":"k1","n":5,"ts":"2024-01-01T00:00:01Z"}.
 */
final class Query {
    private static final String ROWS = "key STRING, n BIGINT, ts TIMESTAMP";

    private Query() {}

    static byte[] run(String[] w) throws Exception {
        Path dir = Paths.get(w[1]);
        SparkSession.Builder b = SparkSession.builder().master("local[2]").appName("query")
                .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
                .config("spark.sql.session.timeZone", "UTC").config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.driver.host", "127.0.0.1").config("spark.sql.warehouse.dir", dir.resolve("warehouse").toString());
        for (Map.Entry<String, String> e : Stores.settings(w, 2).entrySet()) {
            b.config("spark.sql.streaming." + e.getKey(), e.getValue());
        }
        SparkSession spark = b.getOrCreate();
        try {
            Files.createDirectories(dir.resolve("output"));
            StreamingQuery q = plan(spark, w[0], dir).writeStream()
                    .outputMode(w[0].equals("aggregation") ? "update" : "append")
                    .trigger(Trigger.AvailableNow())
                    .option("checkpointLocation", "file://" + dir.resolve("checkpoint"))
                    .foreachBatch((VoidFunction2<Dataset<Row>, Long>) (rows, batch) -> write(dir.resolve("output/" + batch), rows))
                    .start();
            if (!q.awaitTermination(TimeUnit.MINUTES.toMillis(3))) {
                q.stop();
                throw new IllegalStateException("the query did not end within 3 minutes");
            }
            return new byte[0];
        } finally {
            spark.stop();
            SparkSession.clearActiveSession();
            SparkSession.clearDefaultSession();
        }
    }

    private static void write(Path file, Dataset<Row> rows) throws Exception {
        List<String> lines = new ArrayList<>(rows.toJSON().collectAsList());
        lines.sort(null);
        Files.write(file, lines);
    }

    private static Dataset<Row> plan(SparkSession spark, String kind, Path dir) {
        Dataset<Row> left = stream(spark, dir.resolve("left"));
        switch (kind) {
            case "aggregation":
                return left.groupBy("key").agg(count(lit(1)).as("count"), sum("n").as("sum"), max("ts").as("last"));
            case "deduplication":
                return left.dropDuplicates("key", "n");
            case "join":
                Dataset<Row> l = left.withColumnRenamed("ts", "lts").withColumnRenamed("n", "ln").withWatermark("lts", "4 seconds");
                Dataset<Row> r = stream(spark, dir.resolve("right")).withColumnRenamed("ts", "rts").withColumnRenamed("n", "rn")
                        .withColumnRenamed("key", "rkey").withWatermark("rts", "4 seconds");
                return l.join(r, expr("key = rkey AND rts >= lts - INTERVAL 5 SECONDS AND rts <= lts + INTERVAL 5 SECONDS"), "inner")
                        .select(col("key"), col("ln"), col("rn"), col("lts"), col("rts"));
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static Dataset<Row> stream(SparkSession spark, Path dir) {
        return spark.readStream().schema(ROWS).option("maxFilesPerTrigger", "1").json("file://" + dir);
    }
}
