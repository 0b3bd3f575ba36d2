package flink;

import engine.Serve;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.fs.FileSystem;

/** The commands of the Flink engine. */
public final class FlinkEngine {
    private FlinkEngine() {}

    public static void main(String[] args) throws Exception {
        FileSystem.initialize(new Configuration(), null);
        Map<String, Serve.Command> commands = new TreeMap<>();
        commands.put("version", words -> org.apache.flink.runtime.util.EnvironmentInformation.getVersion().getBytes());
        Serve.serve(commands);
    }
}
