// Package config holds every setting of a node: one struct, one constructor with all defaults, layers over it (a JSON file,
// the environment, flags) and one validation of the whole, run before any file or socket is opened (broker.md:
// Configuration). Every error is a *SettingError that names the setting and never repeats a secret.
//
// Secrets are no settings: they come from the environment alone and have a type of their own, so that a Config may be
// printed.
package config

import (
	"fmt"
	"time"
)

// Config is the whole. JSON names are the names of the settings; a Duration is a string such as "10s", a member ending in
// _ms is a number of milliseconds, bytes are plain numbers.
type Config struct {
	HTTP     HTTP     `json:"http"`
	Cluster  Cluster  `json:"cluster"`
	Storage  Storage  `json:"storage"`
	Topic    Topic    `json:"topic"`
	Fanout   Fanout   `json:"fanout"`
	Remotes  Remotes  `json:"remotes"`
	Security Security `json:"security"`
	Log      Log      `json:"log"`
}

// HTTP is the API's listener and its bounds.
type HTTP struct {
	Addr                      string   `json:"addr"`
	MetricsAddr               string   `json:"metrics_addr"`
	MetricsUnauthenticated    bool     `json:"metrics_unauthenticated"`
	TLSCertFile               string   `json:"tls_cert_file"`
	TLSKeyFile                string   `json:"tls_key_file"`
	ReadTimeout               Duration `json:"read_timeout"`
	WriteTimeout              Duration `json:"write_timeout"`
	IdleTimeout               Duration `json:"idle_timeout"`
	ShutdownGrace             Duration `json:"shutdown_grace"`
	MaxConsumeWait            Duration `json:"max_consume_wait"`
	MaxHeaderBytes            int      `json:"max_header_bytes"`
	MaxConnections            int      `json:"max_connections"`
	MaxConsumeInFlightPerUser int      `json:"max_consume_in_flight_per_identity"`
	MaxProduceInFlightPerUser int      `json:"max_produce_in_flight_per_identity"` // 0 is off
	MaxBatchBodyBytesInFlight int64    `json:"max_batch_body_bytes_in_flight"`
	PprofAddr                 string   `json:"pprof_addr"`
}

// Cluster is who this node is and whom it meets. Addr is Raft's own port; node RPC listens on RPCAddr, by default the port
// above it.
type Cluster struct {
	NodeID                string   `json:"node_id"`
	Addr                  string   `json:"addr"`
	RPCAddr               string   `json:"rpc_addr"`
	Peers                 []string `json:"peers"` // id@host:port, this node included
	AdvertiseAddr         string   `json:"advertise_addr"`
	InitialMembers        []string `json:"initial_members"` // ids of peers that bootstrap; empty is all of them
	RaftSnapshotThreshold uint64   `json:"raft_snapshot_threshold"`
	RaftSnapshotInterval  Duration `json:"raft_snapshot_interval"`
	RaftTrailingLogs      uint64   `json:"raft_trailing_logs"`
	TLSCertFile           string   `json:"tls_cert_file"`
	TLSKeyFile            string   `json:"tls_key_file"`
	TLSCAFile             string   `json:"tls_ca_file"`
}

// Storage is the data folder.
type Storage struct {
	DataDir      string `json:"data_dir"`
	SegmentBytes int64  `json:"segment_bytes"`
	// Codec is how payloads are stored in partitions from now on: none or zstd. What is there stays as it is, and is read either way.
	Codec            string `json:"codec"`
	CompressionLevel int    `json:"compression_level"` // of zstd, 1 (fast) to 22 (small)
	// IdleLogEvictionMS is after how long without a read or commit a partition's files are closed; 0 keeps them open.
	IdleLogEvictionMS  int64 `json:"idle_log_eviction_ms"`
	IngressWALPrealloc bool  `json:"ingress_wal_prealloc"` // reserve the room of an ingress WAL segment when it is begun
	// ConsumerOffsetCommitIntervalMS is the longest time until an ack is on the disk.
	ConsumerOffsetCommitIntervalMS int64 `json:"consumer_offset_commit_interval_ms"`
}

// Values of storage.codec.
const (
	CodecNone = "none"
	CodecZstd = "zstd"
)

// Topic holds the defaults and bounds of topics.
type Topic struct {
	DefaultPartitions                int   `json:"default_partitions"`
	MaxPartitions                    int   `json:"max_partitions"`
	DefaultRetentionAgeMS            int64 `json:"default_retention_age_ms"`
	DefaultVisibilityTimeoutMS       int64 `json:"default_visibility_timeout_ms"`
	DefaultMaxInFlightPerPartition   int   `json:"default_max_in_flight_per_partition"`
	DefaultMaxAckedAheadPerPartition int   `json:"default_max_acked_ahead_per_partition"`
}

// Fanout bounds the slabs of local children; a remote child's are bound by its lanes (SND-03).
type Fanout struct {
	MaxBatchRecords int   `json:"max_batch_records"`
	MaxBatchBytes   int   `json:"max_batch_bytes"`
	LingerMS        int64 `json:"linger_ms"`
}

// Remotes is the outbound plane. With security off any of them stops the start.
type Remotes struct {
	AllowedHosts    []string `json:"allowed_hosts"`
	AllowedPorts    []int    `json:"allowed_ports"`
	AllowAddresses  []string `json:"allow_addresses"`
	MaxHeldBytes    int64    `json:"max_held_bytes"` // of records that waiting lanes keep; 0 keeps none
	APIHopEncrypted bool     `json:"api_hop_encrypted"`
}

// Security is the posture of the node.
type Security struct {
	Enabled            bool `json:"enabled"`
	AllowPlaintextRaft bool `json:"allow_plaintext_raft"`
	// AllowLegacyClusterAuth is the posture under which this node holds no remotes (WRT-03, CRD-15).
	AllowLegacyClusterAuth bool `json:"allow_legacy_cluster_auth"`
	AllowInsecureCluster   bool `json:"allow_insecure_cluster"`
}

// Log says how much is logged and in which form.
type Log struct {
	Level  string `json:"level"`  // debug, info, warn, error
	Format string `json:"format"` // json, text
}

// Duration is a time.Duration that reads and writes as text, such as "250ms".
type Duration time.Duration

// UnmarshalText reads a Go duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is no duration such as 10s or 250ms", b)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Default is every setting as it stands when nobody says otherwise.
func Default() Config {
	return Config{
		HTTP: HTTP{
			Addr: ":7942", ReadTimeout: Duration(10 * time.Second), WriteTimeout: Duration(30 * time.Second),
			IdleTimeout: Duration(time.Minute), ShutdownGrace: Duration(10 * time.Second),
			MaxConsumeWait: Duration(10 * time.Second), MaxHeaderBytes: 64 << 10, MaxConnections: 4096,
			MaxConsumeInFlightPerUser: 1024, MaxBatchBodyBytesInFlight: 256 << 20,
		},
		Cluster: Cluster{
			NodeID: "node-1", Addr: ":7943", RaftSnapshotThreshold: 8192,
			RaftSnapshotInterval: Duration(2 * time.Minute), RaftTrailingLogs: 10240,
		},
		Storage: Storage{DataDir: "data", SegmentBytes: 64 << 20, Codec: CodecNone, CompressionLevel: 3,
			IdleLogEvictionMS: (30 * time.Minute).Milliseconds(), ConsumerOffsetCommitIntervalMS: 900},
		Topic: Topic{
			DefaultPartitions: 3, MaxPartitions: 108, DefaultRetentionAgeMS: (7 * 24 * time.Hour).Milliseconds(),
			DefaultVisibilityTimeoutMS: 30_000, DefaultMaxInFlightPerPartition: 1024, DefaultMaxAckedAheadPerPartition: 1024,
		},
		Fanout:   Fanout{MaxBatchRecords: 4096, MaxBatchBytes: 4 << 20, LingerMS: 25},
		Remotes:  Remotes{AllowedPorts: []int{443}, MaxHeldBytes: 256 << 20},
		Security: Security{Enabled: true},
		Log:      Log{Level: "info", Format: "json"},
	}
}

// SettingError names the setting that is wrong, where its value came from, and why.
type SettingError struct {
	Setting string // such as "http.read_timeout"
	Origin  string // "the file x.json", "NARAD_HTTP_ADDR", "--port", or empty after a validation
	Why     string
}

func (e *SettingError) Error() string {
	if e.Origin == "" {
		return fmt.Sprintf("setting %s: %s", e.Setting, e.Why)
	}
	return fmt.Sprintf("setting %s (from %s): %s", e.Setting, e.Origin, e.Why)
}
