package conf

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// Settings are what a configuration comes to for one cluster. Where it is silent they are Hadoop's defaults.
type Settings struct {
	Cluster  Cluster
	Security Security
	Files    Files
	RPC      RPC
	Data     Data
	Write    Write
	Read     Read
}

// Security says how clients prove who they are, and what protects connections.
type Security struct {
	Kerberos bool
	// User is that of HADOOP_USER_NAME, for clusters without Kerberos; empty is the user of the process. ProxyUser, of
	// HADOOP_PROXY_USER, is who acts then, whoever logs in.
	User, ProxyUser string
	// NameNodePrincipal and DataNodePrincipal are service/_HOST@REALM; NameNodePattern, if set, is what a NameNode's must match.
	NameNodePrincipal, NameNodePattern, DataNodePrincipal string
	// RPCProtection and DataProtection are among authentication, integrity and privacy; an empty DataProtection is no
	// protection of data connections.
	RPCProtection, DataProtection []string
	// CipherSuites that may replace the cipher of a private data connection.
	CipherSuites []string
	// FallbackToSimple allows a secure client to talk to a server without security.
	FallbackToSimple bool
	// TokenServiceByAddress: the service of a token is an IP address and not a host name.
	TokenServiceByAddress bool
	// TokenFiles hold delegation tokens.
	TokenFiles []string
}

// Files say how new files are made.
type Files struct {
	Replication int   // 0 if it is not set
	BlockSize   int64 // 0 if it is not set
	Umask       uint32
	// BytesPerChecksum and Checksum (NULL, CRC32 or CRC32C) are those of new blocks.
	BytesPerChecksum int
	Checksum         string
}

// RPC says how NameNodes are called.
type RPC struct {
	ConnectTimeout, CallTimeout, PingInterval, IdleTimeout time.Duration
	MaxRequest, MaxAnswer                                  int
	FailoverBase, FailoverMax                              time.Duration // waits between NameNodes
	MaxFailovers                                           int
}

// Data says how DataNodes are talked to.
type Data struct {
	SocketTimeout time.Duration // 0 is no limit
	WriteTimeout  time.Duration // of packets that are not taken; 0 if it is not set, or no limit
	ByHostname    bool          // connect to names, not to addresses
	SendBuffer    int           // 0 leaves it to the system
	NoDelay       bool
}

// Write says how blocks are written.
type Write struct {
	PacketSize, PacketsInFlight       int
	BlockRetries, RecoveryRetries     int
	NextBlockRetries                  int // while the previous block has too few replicas, also of close
	NextBlockDelay, NextBlockMaxDelay time.Duration
	ReplaceEnabled, ReplaceBestEffort bool
	ReplacePolicy                     string // NEVER, DEFAULT or ALWAYS
	ReplaceMinReplication             int
	ExcludeFor                        time.Duration
	RestartTimeout                    time.Duration
	SlowNodeThreshold                 int
	RecoverLeaseOnCloseError          bool
}

// Read says how blocks are read.
type Read struct {
	Prefetch         int64 // 0 is ten blocks
	AcquireFailures  int
	RetryWindow      time.Duration
	HedgedReads      int // at a time; 0 is none
	HedgeAfter       time.Duration
	CachedSockets    int
	CachedSocketLife time.Duration
	CachedRetries    int
}

// Settings reads what concerns one cluster, as [Conf.Cluster] finds it. All problems are reported at once.
func (c *Conf) Settings(address string) (Settings, error) {
	cluster, err := c.Cluster(address)
	v := &values{Conf: c}
	s := Settings{Cluster: cluster, Security: v.security(), Files: v.files(), RPC: v.rpc(), Data: v.data(), Write: v.write(), Read: v.read()}
	return s, errors.Join(append([]error{err}, v.problems...)...)
}

func (v *values) security() Security {
	mode := strings.ToLower(v.text("hadoop.security.authentication", "simple"))
	if mode != "simple" && mode != "kerberos" {
		v.wrong("hadoop.security.authentication", mode, "it must be simple or kerberos")
	}
	s := Security{
		Kerberos:              mode == "kerberos",
		NameNodePrincipal:     v.text("dfs.namenode.kerberos.principal", ""),
		NameNodePattern:       v.text("dfs.namenode.kerberos.principal.pattern", ""),
		DataNodePrincipal:     v.text("dfs.datanode.kerberos.principal", ""),
		RPCProtection:         v.protection("hadoop.rpc.protection", "authentication"),
		DataProtection:        v.protection("dfs.data.transfer.protection", ""),
		CipherSuites:          v.list("dfs.encrypt.data.transfer.cipher.suites"),
		FallbackToSimple:      v.flag("ipc.client.fallback-to-simple-auth-allowed", false),
		TokenServiceByAddress: v.flag("hadoop.security.token.service.use_ip", true),
		TokenFiles:            v.list("hadoop.token.files"),
	}
	s.ProxyUser, _ = v.env("HADOOP_PROXY_USER")
	if !s.Kerberos {
		s.User, _ = v.env("HADOOP_USER_NAME")
	}
	if files, _ := v.env("HADOOP_TOKEN_FILE_LOCATION"); files != "" {
		s.TokenFiles = strings.Split(files, ",")
	}
	return s
}

func (v *values) protection(key, fallback string) []string {
	levels := v.list(key)
	if len(levels) == 0 && fallback != "" {
		levels = []string{fallback}
	}
	for i, level := range levels {
		levels[i] = strings.ToLower(level)
		if !slices.Contains([]string{"authentication", "integrity", "privacy"}, levels[i]) {
			v.wrong(key, level, "it must be of authentication, integrity and privacy")
		}
	}
	return levels
}

func (v *values) files() Files {
	checksum := strings.ToUpper(v.text("dfs.checksum.type", "CRC32C"))
	if !slices.Contains([]string{"NULL", "CRC32", "CRC32C"}, checksum) {
		v.wrong("dfs.checksum.type", checksum, "it must be NULL, CRC32 or CRC32C")
	}
	f := Files{
		Replication:      int(v.number("dfs.replication", 0, 1, 512)),
		BlockSize:        v.size("dfs.blocksize", 0, 1, math.MaxInt64),
		BytesPerChecksum: int(v.number("dfs.bytes-per-checksum", 512, 1, 1<<20)),
		Checksum:         checksum,
		Umask:            v.umask("fs.permissions.umask-mode", 0o022),
	}
	if f.BlockSize%int64(f.BytesPerChecksum) != 0 {
		v.wrong("dfs.blocksize", v.text("dfs.blocksize", ""), "it must be a multiple of dfs.bytes-per-checksum")
	}
	return f
}

func (v *values) rpc() RPC {
	ms := time.Millisecond
	return RPC{
		ConnectTimeout: v.duration("ipc.client.connect.timeout", ms, 20*time.Second),
		CallTimeout:    v.duration("ipc.client.rpc-timeout.ms", ms, 120*time.Second),
		PingInterval:   v.duration("ipc.ping.interval", ms, time.Minute),
		IdleTimeout:    v.duration("ipc.client.connection.maxidletime", ms, 10*time.Second),
		MaxRequest:     int(v.size("ipc.maximum.data.length", 128<<20, 1, 1<<30)),
		MaxAnswer:      int(v.size("ipc.maximum.response.length", 128<<20, 1, 1<<30)),
		FailoverBase:   v.duration("dfs.client.failover.sleep.base.millis", ms, 500*ms),
		FailoverMax:    v.duration("dfs.client.failover.sleep.max.millis", ms, 15*time.Second),
		MaxFailovers:   int(v.number("dfs.client.failover.max.attempts", 15, 0, math.MaxInt32)),
	}
}

func (v *values) data() Data {
	ms := time.Millisecond
	return Data{
		SocketTimeout: v.duration("dfs.client.socket-timeout", ms, time.Minute),
		WriteTimeout:  v.duration("dfs.datanode.socket.write.timeout", ms, 0),
		ByHostname:    v.flag("dfs.client.use.datanode.hostname", false),
		SendBuffer:    int(v.size("dfs.client.socket.send.buffer.size", 0, 0, 1<<30)),
		NoDelay:       v.flag("dfs.data.transfer.client.tcpnodelay", true),
	}
}

func (v *values) write() Write {
	ms := time.Millisecond
	const (
		block   = "dfs.client.block.write."
		next    = block + "locateFollowingBlock."
		replace = block + "replace-datanode-on-failure."
	)
	policy := strings.ToUpper(v.text(replace+"policy", "DEFAULT"))
	if !slices.Contains([]string{"NEVER", "DEFAULT", "ALWAYS"}, policy) {
		v.wrong(replace+"policy", policy, "it must be NEVER, DEFAULT or ALWAYS")
	}
	return Write{
		PacketSize:               int(v.size("dfs.client-write-packet-size", 64<<10, 1, 16<<20)),
		PacketsInFlight:          int(v.number("dfs.client.write.max-packets-in-flight", 80, 1, 1<<20)),
		BlockRetries:             int(v.number(block+"retries", 3, 0, 1000)),
		RecoveryRetries:          int(v.number("dfs.client.pipeline.recovery.max-retries", 5, 0, 1000)),
		NextBlockRetries:         int(v.number(next+"retries", 5, 0, 1000)),
		NextBlockDelay:           v.duration(next+"initial.delay.ms", ms, 400*ms),
		NextBlockMaxDelay:        v.duration(next+"max.delay.ms", ms, time.Minute),
		ReplaceEnabled:           v.flag(replace+"enable", true),
		ReplacePolicy:            policy,
		ReplaceBestEffort:        v.flag(replace+"best-effort", false),
		ReplaceMinReplication:    int(v.number(replace+"min-replication", 0, 0, 512)),
		ExcludeFor:               v.duration("dfs.client.write.exclude.nodes.cache.expiry.interval.millis", ms, 10*time.Minute),
		RestartTimeout:           v.duration("dfs.client.datanode-restart.timeout", time.Second, 30*time.Second),
		SlowNodeThreshold:        int(v.number("dfs.client.mark.slownode.as.badnode.threshold", 10, 0, math.MaxInt32)),
		RecoverLeaseOnCloseError: v.flag("dfs.client.write.recover.lease.on.close.exception", false),
	}
}

func (v *values) read() Read {
	ms := time.Millisecond
	return Read{
		Prefetch:         v.size("dfs.client.read.prefetch.size", 0, 1, math.MaxInt64),
		AcquireFailures:  int(v.number("dfs.client.max.block.acquire.failures", 3, 0, 1000)),
		RetryWindow:      v.duration("dfs.client.retry.window.base", ms, 3*time.Second),
		HedgedReads:      int(v.number("dfs.client.hedged.read.threadpool.size", 0, 0, 1<<16)),
		HedgeAfter:       v.duration("dfs.client.hedged.read.threshold.millis", ms, 500*ms),
		CachedSockets:    int(v.number("dfs.client.socketcache.capacity", 16, 0, 1<<16)),
		CachedSocketLife: v.duration("dfs.client.socketcache.expiryMsec", ms, 3*time.Second),
		CachedRetries:    int(v.number("dfs.client.cached.conn.retry", 3, 0, 1000)),
	}
}
