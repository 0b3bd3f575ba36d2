package spark;

import engine.Serve;
import java.util.Map;
import java.util.TreeMap;

/** The commands of the Spark engine. */
public final class SparkEngine {
    private SparkEngine() {}

    public static void main(String[] args) throws Exception {
        Map<String, Serve.Command> commands = new TreeMap<>();
        commands.put("version", words -> org.apache.spark.package$.MODULE$.SPARK_VERSION().getBytes());
        Serve.serve(commands);
    }
}
