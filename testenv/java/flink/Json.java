package flink;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A tiny deterministic JSON writer: keys in insertion order, two-space indent, ASCII only (every other UTF-16 code unit
 * as a lower-case \\uXXXX, so that lone surrogates survive), arrays of plain numbers on one line.
 */
final class Json {
    private Json() {}

    /** An object whose keys keep the order in which they were put. */
    static final class Obj extends LinkedHashMap<String, Object> {
        Obj with(String key, Object value) {
            put(key, value);
            return this;
        }
    }

    static Obj obj() {
        return new Obj();
    }

    /** Orders strings by their UTF-8 bytes, as Go's {@code sort.Strings} does (not by UTF-16 as Java does). */
    static final Comparator<String> UTF8_ORDER =
            (a, b) -> Arrays.compareUnsigned(a.getBytes(StandardCharsets.UTF_8), b.getBytes(StandardCharsets.UTF_8));

    /** Up to {@code limit} bytes in hex, more as SHA-256. */
    static Obj blob(byte[] data, int limit) {
        Obj o = obj().with("length", data.length);
        return data.length <= limit ? o.with("hex", hex(data)) : o.with("sha256", sha256(data));
    }

    static String hex(byte[] data) {
        StringBuilder sb = new StringBuilder(data.length * 2);
        for (byte b : data) {
            sb.append(Character.forDigit((b >> 4) & 15, 16)).append(Character.forDigit(b & 15, 16));
        }
        return sb.toString();
    }

    static String sha256(byte[] data) {
        try {
            return hex(MessageDigest.getInstance("SHA-256").digest(data));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static String write(Object value) {
        StringBuilder sb = new StringBuilder();
        write(sb, value, 0);
        return sb.append('\n').toString();
    }

    private static void write(StringBuilder sb, Object v, int depth) {
        if (v == null || v instanceof Boolean || v instanceof Integer || v instanceof Long || v instanceof Short || v instanceof Byte) {
            sb.append(v);
        } else if (v instanceof Number) {
            sb.append(String.format(java.util.Locale.ROOT, "%.3f", ((Number) v).doubleValue()));
        } else if (v instanceof Map) {
            Map<?, ?> m = (Map<?, ?>) v;
            if (m.isEmpty()) {
                sb.append("{}");
                return;
            }
            String sep = "{";
            for (Map.Entry<?, ?> e : m.entrySet()) {
                sb.append(sep);
                newline(sb, depth + 1);
                string(sb, String.valueOf(e.getKey()));
                sb.append(": ");
                write(sb, e.getValue(), depth + 1);
                sep = ",";
            }
            newline(sb, depth);
            sb.append('}');
        } else if (v instanceof long[]) {
            sb.append(Arrays.toString((long[]) v));
        } else if (v instanceof List) {
            List<?> l = (List<?>) v;
            if (l.isEmpty()) {
                sb.append("[]");
            } else if (l.stream().allMatch(x -> x instanceof Number)) {
                sb.append(l);
            } else {
                String sep = "[";
                for (Object x : l) {
                    sb.append(sep);
                    newline(sb, depth + 1);
                    write(sb, x, depth + 1);
                    sep = ",";
                }
                newline(sb, depth);
                sb.append(']');
            }
        } else {
            string(sb, v.toString());
        }
    }

    private static void newline(StringBuilder sb, int depth) {
        sb.append('\n');
        for (int i = 0; i < depth; i++) {
            sb.append("  ");
        }
    }

    private static void string(StringBuilder sb, String s) {
        sb.append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') {
                sb.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                sb.append(String.format("\\u%04x", (int) c));
            } else {
                sb.append(c);
            }
        }
        sb.append('"');
    }
}
