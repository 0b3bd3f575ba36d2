package spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;

/** Commands on state stores that are kept open under names. */
final class Stores {
    private static final HexFormat HEX = HexFormat.of();

    private final Map<String, Store> open = new HashMap<>();

    /** {@code open ID ROOT OPERATOR PARTITION STORE [setting=value]...}: a new provider, with nothing cached. */
    byte[] open(String[] w) throws Exception {
        if (open.containsKey(w[0])) {
            throw new IllegalArgumentException(w[0] + " is open");
        }
        open.put(w[0], new Store(w[1], Long.parseLong(w[2]), Integer.parseInt(w[3]), w[4], settings(w, 5)));
        return new byte[0];
    }

    static Map<String, String> settings(String[] w, int from) {
        Map<String, String> settings = new HashMap<>();
        for (int i = from; i < w.length; i++) {
            int at = w[i].indexOf('=');
            settings.put(w[i].substring(0, at), w[i].substring(at + 1));
        }
        return settings;
    }

    private Store of(String id) {
        Store s = open.get(id);
        if (s == null) {
            throw new IllegalArgumentException(id + " is not open");
        }
        return s;
    }

    /** {@code close ID} */
    byte[] close(String[] w) {
        of(w[0]).close();
        open.remove(w[0]);
        return new byte[0];
    }

    /** {@code apply ID VERSION LINES}: loads the version, does what the lines say ("put HEX HEX", "del HEX"), commits; the new version. */
    byte[] apply(String[] w) throws Exception {
        Store store = of(w[0]);
        org.apache.spark.sql.execution.streaming.state.StateStore s = store.begin(Long.parseLong(w[1]));
        boolean done = false;
        try {
            for (String line : w[2].split("\n")) {
                String[] f = line.split(" ", -1);
                switch (f[0]) {
                    case "" -> { }
                    case "put" -> store.put(s, Store.row(HEX.parseHex(f[1])), Store.row(HEX.parseHex(f[2])));
                    case "del" -> store.remove(s, Store.row(HEX.parseHex(f[1])));
                    default -> throw new IllegalArgumentException(line);
                }
            }
            byte[] version = Long.toString(s.commit()).getBytes(StandardCharsets.US_ASCII);
            done = true;
            return version;
        } finally {
            if (!done) {
                s.abort();
            }
        }
    }

    /** {@code dump ID VERSION}: a line "HEX HEX" for each entry, sorted by the bytes of the key. */
    byte[] dump(String[] w) throws Exception {
        Map<byte[], byte[]> rows = new TreeMap<>(Arrays::compareUnsigned);
        of(w[0]).each(Long.parseLong(w[1]), rows::put);
        StringBuilder s = new StringBuilder();
        rows.forEach((k, v) -> s.append(HEX.formatHex(k)).append(' ').append(HEX.formatHex(v)).append('\n'));
        return s.toString().getBytes(StandardCharsets.US_ASCII);
    }

    /** {@code maintain ID}: what Spark's maintenance thread does: snapshot and clean-up. */
    byte[] maintain(String[] w) {
        of(w[0]).maintain();
        return new byte[0];
    }
}
