package spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;

/**
 * One of Spark's state stores. The interfaces differ from 3.5 to 4.2, so methods are found by name and given as many of the
 * arguments as they take.
 */
final class Store implements AutoCloseable {
    private static final String STREAMING = "spark.sql.streaming.";

    private final StateStoreProvider provider;
    private final Method getStore;
    private final Method getReadStore;
    private Method put;
    private Method remove;
    private Method iterator;

    /**
     * {@code root} is what Spark calls the checkpoint root of a store: the folder "state" of a query's checkpoint. Settings are
     * Spark's without "spark.sql.streaming."; "rocksdb" chooses the other provider.
     */
    Store(String root, long operator, int partition, String name, Map<String, String> settings) throws Exception {
        Map<String, String> set = new HashMap<>(settings);
        boolean rocks = set.remove("rocksdb") != null;
        SQLConf conf = new SQLConf();
        conf.setConfString(STREAMING + "stateStore.formatValidation.enabled", "false"); // rows are any bytes here
        conf.setConfString(STREAMING + "stateStore.commitValidation.enabled", "false");
        String provider = "org.apache.spark.sql.execution.streaming.state." + (rocks ? "RocksDBStateStoreProvider" : "HDFSBackedStateStoreProvider");
        conf.setConfString(STREAMING + "stateStore.providerClass", provider);
        set.forEach((k, v) -> conf.setConfString(STREAMING + k, v));
        Configuration hadoop = new Configuration();
        hadoop.set("sql.streaming.runId", UUID.randomUUID().toString());
        this.provider = (StateStoreProvider) Class.forName(provider).getDeclaredConstructor().newInstance();
        StructType k = StructType.fromDDL("k binary");
        Method init = method(StateStoreProvider.class, "init");
        StateStoreId id = new StateStoreId(root, operator, partition, name);
        StateStoreConf storeConf = new StateStoreConf(conf, scala.collection.immutable.Map$.MODULE$.empty());
        StructType v = StructType.fromDDL("v binary");
        if (init.getParameterCount() == 6) {
            call(init, this.provider, id, k, v, 0, storeConf, hadoop);
        } else {
            Object encoder = Class.forName("org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec")
                    .getDeclaredConstructor(StructType.class).newInstance(k);
            call(init, this.provider, id, k, v, encoder, false, storeConf, hadoop, false, Option.empty());
        }
        getStore = method(StateStoreProvider.class, "getStore");
        getReadStore = method(StateStoreProvider.class, "getReadStore");
    }

    /** The version, to be changed and committed. */
    org.apache.spark.sql.execution.streaming.state.StateStore begin(long version) throws Exception {
        org.apache.spark.sql.execution.streaming.state.StateStore s =
                (org.apache.spark.sql.execution.streaming.state.StateStore) call(getStore, provider, version, Option.empty(), false, false);
        if (put == null) {
            Class<?> c = org.apache.spark.sql.execution.streaming.state.StateStore.class;
            put = method(c, "put");
            remove = method(c, "remove");
        }
        return s;
    }

    void put(Object store, UnsafeRow key, UnsafeRow value) throws Exception {
        call(put, store, key, value, "default");
    }

    void remove(Object store, UnsafeRow key) throws Exception {
        call(remove, store, key, "default");
    }

    interface Each {
        void row(byte[] key, byte[] value);
    }

    /** Loads the version and gives each entry, in no order. */
    void each(long version, Each to) throws Exception {
        org.apache.spark.sql.execution.streaming.state.ReadStateStore s =
                (org.apache.spark.sql.execution.streaming.state.ReadStateStore) call(getReadStore, provider, version, Option.empty());
        try {
            if (iterator == null) {
                iterator = method(org.apache.spark.sql.execution.streaming.state.ReadStateStore.class, "iterator");
            }
            Iterator<?> it = (Iterator<?>) call(iterator, s, "default");
            while (it.hasNext()) {
                UnsafeRowPair pair = (UnsafeRowPair) it.next();
                to.row(pair.key().getBytes().clone(), pair.value().getBytes().clone());
            }
        } finally {
            s.abort();
        }
    }

    void maintain() {
        provider.doMaintenance();
    }

    @Override
    public void close() {
        provider.close();
    }

    /** The rows are opaque, so the number of their fields does not matter. */
    static UnsafeRow row(byte[] bytes) {
        UnsafeRow r = new UnsafeRow(1);
        r.pointTo(bytes, bytes.length);
        return r;
    }

    private static Method method(Class<?> c, String name) {
        Method found = null;
        for (Method m : c.getMethods()) {
            if (m.getName().equals(name) && !java.lang.reflect.Modifier.isStatic(m.getModifiers())
                    && (found == null || m.getParameterCount() > found.getParameterCount())) {
                found = m;
            }
        }
        found.setAccessible(true);
        return found;
    }

    private static Object call(Method m, Object target, Object... arguments) throws Exception {
        try {
            return m.invoke(target, java.util.Arrays.copyOf(arguments, m.getParameterCount()));
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exception) {
                throw (Exception) e.getCause();
            }
            throw e;
        }
    }
}
