package wire

// Limits of a remote. Zero means "not named" in a request (a limit of 0 is refused in a PATCH) and never stands in an answer.
type Limits struct {
	MaxInFlight       int    `json:"max_in_flight,omitempty"`
	RequestTimeoutMS  int64  `json:"request_timeout_ms,omitempty"`
	IdleConnTimeoutMS int64  `json:"idle_conn_timeout_ms,omitempty"`
	ConnMaxAgeMS      int64  `json:"conn_max_age_ms,omitempty"`
	CheckIntervalMS   int64  `json:"check_interval_ms,omitempty"`
	Compression       string `json:"compression,omitempty"`
}

// DefaultLimits are the defaults of api.md.
func DefaultLimits() Limits {
	return Limits{
		MaxInFlight: 16, RequestTimeoutMS: 30_000, IdleConnTimeoutMS: 30_000, ConnMaxAgeMS: 300_000,
		CheckIntervalMS: 60_000, Compression: "none",
	}
}

// CreateRemote is the body of POST /v1/remotes.
type CreateRemote struct {
	Name     string  `json:"name"`
	URL      string  `json:"url"`
	Username string  `json:"username"`
	Password string  `json:"password"`
	CAPEM    string  `json:"ca_pem,omitempty"`
	Limits   *Limits `json:"limits,omitempty"`
}

// PatchRemote is the body of PATCH /v1/remotes/{n}; nil members stay as they are.
type PatchRemote struct {
	URL      *string      `json:"url,omitempty"`
	Username *string      `json:"username,omitempty"`
	Password *string      `json:"password,omitempty"`
	CAPEM    *string      `json:"ca_pem,omitempty"`
	Limits   *PatchLimits `json:"limits,omitempty"`
}

// PatchLimits names the limits to change.
type PatchLimits struct {
	MaxInFlight       *int    `json:"max_in_flight,omitempty"`
	RequestTimeoutMS  *int64  `json:"request_timeout_ms,omitempty"`
	IdleConnTimeoutMS *int64  `json:"idle_conn_timeout_ms,omitempty"`
	ConnMaxAgeMS      *int64  `json:"conn_max_age_ms,omitempty"`
	CheckIntervalMS   *int64  `json:"check_interval_ms,omitempty"`
	Compression       *string `json:"compression,omitempty"`
}

// Password is what answers say of a stored password.
type Password struct {
	Fingerprint string `json:"fingerprint"` // 12 hex (CRD-05)
	SetAt       string `json:"set_at"`      // RFC 3339
	SetBy       string `json:"set_by"`
	KeyVersion  string `json:"key_version"`
}

// Remote is a remote as an admin sees it.
type Remote struct {
	Name              string       `json:"name"`
	ID                string       `json:"id"`
	URL               string       `json:"url"`
	Username          string       `json:"username"`
	Password          Password     `json:"password"`
	CredentialVersion uint64       `json:"credential_version"`
	CAPEMSHA512       string       `json:"ca_pem_sha512,omitempty"`
	Limits            Limits       `json:"limits"`
	Revision          uint64       `json:"revision"`
	CreatedAt         string       `json:"created_at"`
	CreatedBy         string       `json:"created_by"`
	Links             []string     `json:"links,omitempty"` // "parent/child"
	Nodes             []RemoteNode `json:"nodes,omitempty"`
}

// Credential cache states of a node.
const (
	CredentialReady        = "ready"
	CredentialStale        = "stale"
	CredentialNotReadable  = "credential_unreadable"
	CredentialNodeInsecure = "node_insecure"
	CredentialMissing      = "missing"
	CredentialUnknown      = "unknown"
)

// RemoteNode is one node's view of a remote.
type RemoteNode struct {
	Node               string   `json:"node"`
	State              string   `json:"state"`
	CredentialVersion  uint64   `json:"credential_version"`
	KeyVersion         string   `json:"key_version"`
	Fingerprint        string   `json:"fingerprint"`
	LastOKAt           *string  `json:"last_ok_at"`
	LastError          string   `json:"last_error"` // a class, "none" when clean
	ServerCertNotAfter *string  `json:"server_cert_not_after"`
	RTTMS              *float64 `json:"rtt_ms"`
}

// RemoteKey describes the key that new passwords are sealed under.
type RemoteKey struct {
	KeyVersion    string  `json:"key_version"`
	FirstSealedAt string  `json:"first_sealed_at,omitempty"`
	AgeSeconds    float64 `json:"age_seconds"`
}

// Remotes is the answer to GET /v1/remotes.
type Remotes struct {
	Allowlist    string      `json:"allowlist"` // set or none
	Key          RemoteKey   `json:"key"`
	Remotes      []Remote    `json:"remotes"`
	Lingering    []Lingering `json:"lingering,omitempty"`
	NotAnswering []string    `json:"not_answering,omitempty"`
}

// Lingering is a deleted remote that nodes still hold.
type Lingering struct {
	Name         string   `json:"name"`
	ID           string   `json:"id"`
	Holding      []string `json:"holding"`
	NotAnswering []string `json:"not_answering"`
}

// Reencrypted is the answer to a re-encrypt: every remote's name stands in one of the three.
type Reencrypted struct {
	KeyVersion     string           `json:"key_version"` // of the current key
	Reencrypted    []string         `json:"reencrypted"`
	AlreadyCurrent []string         `json:"already_current"`
	Failed         []ReencryptError `json:"failed"`
}

// ReencryptError is a remote whose password could not be opened. Reason is key_unknown or open_failed.
type ReencryptError struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Reasons of a ReencryptError.
const (
	KeyUnknown = "key_unknown" // sealed under neither the current nor the previous secret
	OpenFailed = "open_failed" // sealed for something else, or damaged
)

// Check is one member's report of a target check. Class is empty on a pass, else a link state or a check class of api.md.
type Check struct {
	Node               string   `json:"node"`
	Result             string   `json:"result"` // pass or fail
	Class              string   `json:"class,omitempty"`
	CredentialVersion  uint64   `json:"credential_version"`
	TargetID           string   `json:"target_id,omitempty"`
	TargetServesIDs    bool     `json:"target_serves_ids"`
	RTTMS              *float64 `json:"rtt_ms,omitempty"`
	LaneCapacityPerS   *float64 `json:"lane_capacity_per_s,omitempty"`
	ServerCertNotAfter string   `json:"server_cert_not_after,omitempty"`
	Warnings           []string `json:"warnings,omitempty"`
	Posture            *Posture `json:"posture,omitempty"` // absent of a member that did not answer
}

// Posture is how a member is set up as far as remotes are concerned.
type Posture struct {
	Security          bool `json:"security_enabled"`
	LegacyClusterAuth bool `json:"legacy_cluster_auth"`
	RaftTLS           bool `json:"raft_tls"`
	APIHopEncrypted   bool `json:"api_hop_encrypted"`
}

// Allows tells whether a member of this posture may have remotes (WRT-03).
func (p Posture) Allows() bool { return p.Security && !p.LegacyClusterAuth }

// Capabilities is what a target takes: messages in one request, and zstd.
type Capabilities struct {
	MaxMessages int  `json:"max_messages"`
	Zstd        bool `json:"zstd"`
}
