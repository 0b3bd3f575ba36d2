package engine;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;

/**
 * Answers calls on standard input, one at a time, until its end.
 *
 * <pre>
 * call    int32 n, then n words: int32 length, UTF-8. The first is the command's name.
 * answer  byte 0 (result) or 1 (text of an exception), int32 length, bytes
 * </pre>
 */
public final class Serve {
    /** A command gets the words after its name. */
    public interface Command {
        byte[] run(String[] words) throws Exception;
    }

    private Serve() {}

    /** Serves and ends the process: engines leave threads that would hold it up. */
    public static void serve(Map<String, Command> commands) throws IOException {
        OutputStream answers = System.out;
        System.setOut(System.err); // engines print
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(answers));
        for (;;) {
            String[] words;
            try {
                words = words(in);
            } catch (EOFException e) {
                Runtime.getRuntime().halt(0);
                return;
            }
            int failed = 0;
            byte[] answer;
            try {
                Command command = commands.get(words[0]);
                if (command == null) {
                    throw new IllegalArgumentException("no command " + words[0] + "; there are " + commands.keySet());
                }
                answer = command.run(Arrays.copyOfRange(words, 1, words.length));
            } catch (Throwable t) {
                failed = 1;
                answer = text(t).getBytes(StandardCharsets.UTF_8);
            }
            out.writeByte(failed);
            out.writeInt(answer.length);
            out.write(answer);
            out.flush();
        }
    }

    private static String[] words(DataInputStream in) throws IOException {
        String[] words = new String[in.readInt()];
        for (int i = 0; i < words.length; i++) {
            byte[] b = new byte[in.readInt()];
            in.readFully(b);
            words[i] = new String(b, StandardCharsets.UTF_8);
        }
        return words;
    }

    /** The exception, its causes, and where it came from. */
    private static String text(Throwable t) {
        StringBuilder s = new StringBuilder();
        for (Throwable c = t; c != null && s.length() < 4000; c = c.getCause()) {
            s.append(s.length() == 0 ? "" : "\ncaused by ").append(c);
        }
        StackTraceElement[] trace = t.getStackTrace();
        for (int i = 0; i < Math.min(6, trace.length); i++) {
            s.append("\n\tat ").append(trace[i]);
        }
        return s.toString();
    }
}
