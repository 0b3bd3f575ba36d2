package flink;

import engine.Serve;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.runtime.util.EnvironmentInformation;

/** The commands of the Flink engine; each is described where it is implemented. */
public final class FlinkEngine {
    private FlinkEngine() {}

    public static void main(String[] args) throws Exception {
        FileSystem.initialize(new Configuration(), null);
        Map<String, Serve.Command> commands = new TreeMap<>();
        commands.put("version", words -> EnvironmentInformation.getVersion().getBytes(StandardCharsets.UTF_8));
        commands.put("rewrite", Metadata::rewrite);
        commands.put("dispose", Metadata::dispose);
        commands.put("bench", Metadata::bench);
        commands.put("job", Job::run);
        try {
            commands.put("dump", (Serve.Command) Class.forName("flink.DumpCommand").getDeclaredConstructor().newInstance());
        } catch (ClassNotFoundException e) {
            // it is compiled for the newest Flink only
        }
        Serve.serve(commands);
    }
}
