package flink;

import engine.Serve;
import java.nio.charset.StandardCharsets;

/** {@code dump POINTER}: what this Flink reads, as canonical JSON. It needs the classes of Flink 2.3. */
final class DumpCommand implements Serve.Command {
    @Override
    public byte[] run(String[] words) throws Exception {
        return Json.write(Dump.dump(words[0])).getBytes(StandardCharsets.UTF_8);
    }
}
