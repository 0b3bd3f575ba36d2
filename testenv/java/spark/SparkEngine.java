package spark;

import engine.Serve;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/** The commands of the Spark engine; each is described where it is implemented. */
public final class SparkEngine {
    private SparkEngine() {}

    public static void main(String[] args) throws Exception {
        Map<String, Serve.Command> commands = new TreeMap<>();
        commands.put("version", words -> org.apache.spark.package$.MODULE$.SPARK_VERSION().getBytes(StandardCharsets.UTF_8));
        Stores stores = new Stores();
        commands.put("open", stores::open);
        commands.put("close", stores::close);
        commands.put("apply", stores::apply);
        commands.put("dump", stores::dump);
        commands.put("maintain", stores::maintain);
        commands.put("bench", Bench::run);
        commands.put("query", Query::run);
        Serve.serve(commands);
    }
}
