// Package testenv runs a real HDFS for tests: a NameNode and DataNodes of Apache Hadoop, each a process of its own, on free
// ports of the loopback interface, and with Kerberos if wanted, from a private MIT KDC. Tests ask for one with Require:
//
//	cluster := testenv.Require(t, testenv.Options{})
//	open(cluster.URL(), cluster.ConfDir())
//
// The command hdfsenv does the same by hand:
//
//	go run ./testenv/cmd/hdfsenv up
//	export HADOOP_CONF_DIR=…            # as it prints
//	go run ./testenv/cmd/hdfsenv kill dn1
//	go run ./testenv/cmd/hdfsenv down
//
// # What it needs
//
// A JDK of version 17 to 23, and Maven for the first run: it fetches Hadoop's jars (65 MB) and makes an empty file system and
// an archive of classes for a faster start. All are kept in $HDFSCKPT_CACHE, or ~/.cache/hdfsckpt. Kerberos needs krb5kdc,
// kdb5_util and kadmin.local, which root gets by apt-get without asking.
//
// Where these are missing a test is skipped, and says in one line why. Where the environment variable HDFSCKPT_REQUIRE names
// "hdfs", "kerberos" or "all", such a test fails. HDFSCKPT_HDFS=none leaves all of these tests out.
//
// # Whose cluster
//
// All tests that ask for the same Options, in whatever test binary, use one cluster, which ends ten seconds after the last of
// the binaries. One that was started by `hdfsenv up` with the same options is used and stays. A test that kills or stops
// daemons sets Options.Exclusive, and gets a cluster of its own; on a shared one these methods are refused.
//
// With HADOOP_CONF_DIR set, tests run on the cluster that it describes, which is somebody's own: nothing is started, and tests
// that need an exclusive one are skipped. What such a cluster wants to know of Kerberos is taken from KRB5_CONFIG,
// HDFSCKPT_PRINCIPAL and HDFSCKPT_KEYTAB.
//
// With HDFSCKPT_HDFS=docker, which goes before HADOOP_CONF_DIR, tests run on the images that `make docker-up` has started: one
// cluster without Kerberos and one with it, three DataNodes each. Tests that need anything else are skipped, required or not.
//
// # Engines
//
// RequireFlink, RequireSpark and RequireHadoop (its client) give a test the real code of these engines, fetched by Maven and compiled with the small
// programs in the folder java, in a JVM that answers calls. HDFSCKPT_REQUIRE names them "flink" and "spark";
// HDFSCKPT_ENGINES=none leaves their tests out.
//
// # What is left behind
//
// Nothing. A cluster's daemons are children of one supervising process (`hdfsenv run`), which holds on for as long as somebody
// holds a lease: a lock on a file, which the kernel releases when a test process ends, however it ends. Then the supervisor
// kills the daemons and removes their folder. If the supervisor itself is killed, the kernel kills the daemons with it on Linux;
// elsewhere the next start in the same folder, or `hdfsenv down`, kills those that are left, by process id and time of start.
package testenv
