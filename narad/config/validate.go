package config

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var nodeID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// rule is one check of the whole: the setting it is about, whether it holds, and what is allowed.
type rule struct {
	setting string
	holds   bool
	why     string
}

// Validate checks every setting and the relations between them; the first that fails is returned. It opens nothing but the
// TLS files' names.
func (c *Config) Validate() error {
	rules := slices.Concat(c.httpRules(), c.clusterRules(), c.topicRules(), c.remoteRules(), []rule{
		{"storage.data_dir", c.Storage.DataDir != "", "must name a folder"},
		{"storage.consumer_offset_commit_interval_ms", c.Storage.ConsumerOffsetCommitIntervalMS >= 1 && c.Storage.ConsumerOffsetCommitIntervalMS <= 60_000,
			"must be 1 to 60000"},
		{"storage.codec", c.Storage.Codec == CodecNone || c.Storage.Codec == CodecZstd, "must be none or zstd"},
		{"storage.compression_level", c.Storage.CompressionLevel >= 1 && c.Storage.CompressionLevel <= 22, "must be 1 to 22"},
		{"storage.idle_log_eviction_ms", c.Storage.IdleLogEvictionMS == 0 || c.Storage.IdleLogEvictionMS >= 1000,
			"must be 0, which keeps idle logs open, or at least 1000"},
		{"storage.segment_bytes", c.Storage.SegmentBytes >= 1<<20, "must be at least 1048576 bytes"},
		{"fanout.max_batch_records", c.Fanout.MaxBatchRecords >= 1, "must be at least 1"},
		{"fanout.max_batch_bytes", c.Fanout.MaxBatchBytes >= 1<<20, "must be at least 1048576 bytes"},
		{"fanout.linger_ms", c.Fanout.LingerMS >= 0 && c.Fanout.LingerMS <= 1000, "must be 0 to 1000"},
		{"log.level", slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level), "must be debug, info, warn or error"},
		{"log.format", c.Log.Format == "json" || c.Log.Format == "text", "must be json or text"},
	})
	for _, r := range rules {
		if !r.holds {
			return &SettingError{Setting: r.setting, Why: r.why}
		}
	}
	return nil
}

func (c *Config) httpRules() []rule {
	h := &c.HTTP
	positive := func(name string, d Duration) rule {
		return rule{"http." + name, d > 0, "must be above 0"}
	}
	return []rule{
		{"http.addr", validAddr(h.Addr), "must be host:port, such as :7942"},
		{"http.metrics_addr", h.MetricsAddr == "" || validAddr(h.MetricsAddr), "must be host:port or empty"},
		{"http.pprof_addr", h.PprofAddr == "" || validAddr(h.PprofAddr), "must be host:port or empty"},
		{"http.tls_key_file", (h.TLSCertFile == "") == (h.TLSKeyFile == ""), "must be set together with http.tls_cert_file"},
		{"http.tls_cert_file", fileOrNone(h.TLSCertFile), "does not exist"},
		{"http.tls_key_file", fileOrNone(h.TLSKeyFile), "does not exist"},
		positive("read_timeout", h.ReadTimeout), positive("write_timeout", h.WriteTimeout),
		positive("idle_timeout", h.IdleTimeout), positive("shutdown_grace", h.ShutdownGrace),
		{"http.max_consume_wait", h.MaxConsumeWait > 0 && h.MaxConsumeWait <= h.ShutdownGrace,
			"must be above 0 and not above http.shutdown_grace (" + time.Duration(h.ShutdownGrace).String() + ")"},
		{"http.max_header_bytes", h.MaxHeaderBytes >= 4096, "must be at least 4096"},
		{"http.max_connections", h.MaxConnections >= 1, "must be at least 1"},
		{"http.max_consume_in_flight_per_identity", h.MaxConsumeInFlightPerUser >= 1, "must be at least 1"},
		{"http.max_produce_in_flight_per_identity", h.MaxProduceInFlightPerUser >= 0, "must be at least 0, which is off"},
		{"http.max_batch_body_bytes_in_flight", h.MaxBatchBodyBytesInFlight >= 16<<20, "must be at least 16777216, one whole body"},
	}
}

func (c *Config) clusterRules() []rule {
	cl := &c.Cluster
	rules := []rule{
		{"cluster.node_id", nodeID.MatchString(cl.NodeID), "must be 1 to 64 of A-Za-z0-9._-"},
		{"cluster.addr", validAddr(cl.Addr), "must be host:port, such as :7943"},
		{"cluster.rpc_addr", cl.RPCAddr == "" || validAddr(cl.RPCAddr), "must be host:port or empty"},
		{"cluster.advertise_addr", cl.AdvertiseAddr == "" || validAddr(cl.AdvertiseAddr), "must be host:port or empty"},
		{"cluster.peers", len(cl.Peers) == 0 || len(cl.Peers) >= 3, "must name at least 3 nodes, or none"},
		{"cluster.raft_snapshot_threshold", cl.RaftSnapshotThreshold >= 1, "must be at least 1"},
		{"cluster.raft_snapshot_interval", cl.RaftSnapshotInterval > 0, "must be above 0"},
		{"cluster.tls_key_file", (cl.TLSCertFile == "") == (cl.TLSKeyFile == "") && (cl.TLSCertFile == "") == (cl.TLSCAFile == ""),
			"must be set together with cluster.tls_cert_file and cluster.tls_ca_file"},
		{"cluster.addr", c.raftGuarded(), "needs cluster.tls_cert_file, cluster.tls_key_file and cluster.tls_ca_file " +
			"while security is on, or security.allow_plaintext_raft, or a loopback address without peers"},
		{"cluster.peers", len(cl.Peers) == 0 || c.Security.Enabled || c.Security.AllowInsecureCluster,
			"needs security, or security.allow_insecure_cluster"},
	}
	self, known, addrs := len(cl.Peers) == 0, map[string]bool{}, map[string]bool{}
	for _, p := range cl.Peers {
		id, addr, ok := strings.Cut(p, "@")
		rules = append(rules, rule{"cluster.peers", ok && nodeID.MatchString(id) && validAddr(addr),
			fmt.Sprintf("%q is not id@host:port", p)},
			rule{"cluster.peers", !known[id], fmt.Sprintf("names node %s twice", id)},
			rule{"cluster.peers", !addrs[addr], fmt.Sprintf("names the address %s twice", addr)})
		known[id], addrs[addr] = true, true
		self = self || id == cl.NodeID
	}
	rules = append(rules, rule{"cluster.peers", self, "must name this node (" + cl.NodeID + ") too"})
	return append(rules, cl.firstRules(known)...)
}

// firstRules are those of the nodes that make the cluster. Fewer than three would make one beside the others'.
func (cl *Cluster) firstRules(peers map[string]bool) []rule {
	first := cl.InitialMembers
	rules := []rule{
		{"cluster.initial_members", len(first) == 0 || len(first) >= 3, "must name at least 3 nodes, or none, which is all of cluster.peers"},
	}
	for i, id := range first {
		rules = append(rules, rule{"cluster.initial_members", peers[id], fmt.Sprintf("names node %s, which cluster.peers does not", id)},
			rule{"cluster.initial_members", !slices.Contains(first[:i], id), fmt.Sprintf("names node %s twice", id)})
	}
	return rules
}

// raftGuarded is the rule of broker.md: Security.
func (c *Config) raftGuarded() bool {
	if !c.Security.Enabled || c.Security.AllowPlaintextRaft || c.Cluster.TLSCertFile != "" {
		return true
	}
	host, _, err := net.SplitHostPort(c.Cluster.Addr)
	if err != nil || len(c.Cluster.Peers) > 0 {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (c *Config) topicRules() []rule {
	t := &c.Topic
	return []rule{
		{"topic.max_partitions", t.MaxPartitions >= 3 && t.MaxPartitions <= 108, "must be 3 to 108"},
		{"topic.default_partitions", t.DefaultPartitions >= 3 && t.DefaultPartitions <= t.MaxPartitions, "must be 3 to topic.max_partitions"},
		{"topic.default_retention_age_ms", t.DefaultRetentionAgeMS == 0 || t.DefaultRetentionAgeMS >= time.Hour.Milliseconds(), "must be 0 (for ever) or at least one hour"},
		{"topic.default_visibility_timeout_ms", t.DefaultVisibilityTimeoutMS >= 1, "must be at least 1"},
		{"topic.default_max_in_flight_per_partition", t.DefaultMaxInFlightPerPartition >= 1, "must be at least 1"},
		{"topic.default_max_acked_ahead_per_partition", t.DefaultMaxAckedAheadPerPartition >= 1, "must be at least 1"},
	}
}

func (c *Config) remoteRules() []rule {
	r, def := &c.Remotes, Default().Remotes
	rules := []rule{
		{"remotes.max_held_bytes", r.MaxHeldBytes >= 0, "must be at least 0"},
		{"remotes.allowed_ports", len(r.AllowedPorts) > 0, "must name at least one port"},
		{"security.enabled", c.Security.Enabled || len(r.AllowedHosts) == 0 && len(r.AllowAddresses) == 0 && !r.APIHopEncrypted &&
			slices.Equal(r.AllowedPorts, def.AllowedPorts) && r.MaxHeldBytes == def.MaxHeldBytes, "is off, which no setting of remotes allows: remotes require security"},
	}
	for _, p := range r.AllowedPorts {
		rules = append(rules, rule{"remotes.allowed_ports", p >= 1 && p <= 65535, strconv.Itoa(p) + " is no port"})
	}
	for _, a := range r.AllowAddresses {
		_, errA := netip.ParseAddr(a)
		_, errP := netip.ParsePrefix(a)
		rules = append(rules, rule{"remotes.allow_addresses", errA == nil || errP == nil, fmt.Sprintf("%q is no IP address or prefix", a)})
	}
	return rules
}

func validAddr(a string) bool {
	_, port, err := net.SplitHostPort(a)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= 65535
}

func fileOrNone(path string) bool {
	if path == "" {
		return true
	}
	_, err := os.Stat(path)
	return err == nil
}
