package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "narad.json")
	require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	return path
}

var loopback = []string{"NARAD_CLUSTER_ADDR=127.0.0.1:7943"}

func TestLayers(t *testing.T) {
	path := write(t, `{"http":{"addr":":1","read_timeout":"3s","max_connections":7},"remotes":{"allowed_ports":[8443]},"cluster":{"addr":"127.0.0.1:0"}}`)
	c, err := Load(Sources{
		File:  path,
		Env:   []string{"NARAD_HTTP_ADDR=:2", "NARAD_HTTP_MAX_CONNECTIONS=8", "NARAD_NODE_ID=n7", "NARAD_REMOTES_ALLOWED_HOSTS=a.example, *.b.example", "HOME=x"},
		Flags: map[string]string{"http.addr": ":3"},
	})
	require.NoError(t, err)
	require.Equal(t, ":3", c.HTTP.Addr, "a flag wins over all")
	require.Equal(t, 8, c.HTTP.MaxConnections, "the environment wins over the file")
	require.Equal(t, Duration(3*time.Second), c.HTTP.ReadTimeout)
	require.Equal(t, "n7", c.Cluster.NodeID)
	require.Equal(t, []string{"a.example", "*.b.example"}, c.Remotes.AllowedHosts)
	require.Equal(t, []int{8443}, c.Remotes.AllowedPorts)
	require.Equal(t, Default().Topic, c.Topic)
}

func TestStorageComesFromTheFileAlone(t *testing.T) {
	c, err := Load(Sources{Env: append(loopback, "NARAD_STORAGE_SEGMENT_BYTES=5000000", "NARAD_DATA_DIR=here")})
	require.NoError(t, err)
	require.Equal(t, Default().Storage.SegmentBytes, c.Storage.SegmentBytes)
	require.Equal(t, "here", c.Storage.DataDir)
}

// The held budget may be any size, none included, from the file or over it from the environment.
//
// covers: GAT-07
func TestTheHeldBudgetIsSet(t *testing.T) {
	require.EqualValues(t, 256<<20, Default().Remotes.MaxHeldBytes)
	file := write(t, `{"remotes":{"max_held_bytes":65536}}`)
	c, err := Load(Sources{File: file, Env: loopback})
	require.NoError(t, err)
	require.EqualValues(t, 65536, c.Remotes.MaxHeldBytes)
	c, err = Load(Sources{File: file, Env: append(append([]string{}, loopback...), "NARAD_REMOTES_MAX_HELD_BYTES=0")})
	require.NoError(t, err)
	require.Zero(t, c.Remotes.MaxHeldBytes)
}

func TestErrorsNameTheSetting(t *testing.T) {
	cases := map[string]struct {
		file string
		env  []string
		flag map[string]string
		want string
	}{
		"unknown key":     {file: `{"http":{"adr":":1"}}`, want: "http.adr"},
		"unknown block":   {file: `{"htp":{"addr":":1"}}`, want: "htp.addr"},
		"wrong type":      {file: `{"http":{"read_timeout":3}}`, want: "http.read_timeout"},
		"no unit":         {file: `{"http":{"read_timeout":"3"}}`, want: "http.read_timeout"},
		"bad environment": {env: []string{"NARAD_HTTP_MAX_CONNECTIONS=many"}, want: "http.max_connections"},
		"unknown flag":    {flag: map[string]string{"http.prot": "1"}, want: "http.prot"},
		"bad port":        {file: `{"remotes":{"allowed_ports":[0]}}`, want: "remotes.allowed_ports"},
		"bad address":     {file: `{"remotes":{"allow_addresses":["10.0.0"]}}`, want: "remotes.allow_addresses"},
		"wait over grace": {file: `{"http":{"max_consume_wait":"11s"}}`, want: "http.max_consume_wait"},
		"half of TLS":     {file: `{"http":{"tls_cert_file":"x.pem"}}`, want: "http.tls_key_file"},
		"two peers":       {file: `{"cluster":{"peers":["a@h:1","b@h:2"]}}`, want: "cluster.peers"},
		"a peer twice": {
			file: `{"cluster":{"node_id":"a","peers":["a@h:1","b@h:2","b@h:3"]},"security":{"allow_plaintext_raft":true}}`, want: "cluster.peers",
		},
		"an address twice": {
			file: `{"cluster":{"node_id":"a","peers":["a@h:1","b@h:2","c@h:2"]},"security":{"allow_plaintext_raft":true}}`, want: "cluster.peers",
		},
		"a first member that is no peer": {
			file: `{"cluster":{"node_id":"a","peers":["a@h:1","b@h:2","c@h:3"],"initial_members":["a","b","d"]},"security":{"allow_plaintext_raft":true}}`,
			want: "cluster.initial_members",
		},
		"a first member twice": {
			file: `{"cluster":{"node_id":"a","peers":["a@h:1","b@h:2","c@h:3"],"initial_members":["a","b","b"]},"security":{"allow_plaintext_raft":true}}`,
			want: "cluster.initial_members",
		},
		"one first member": {
			file: `{"cluster":{"node_id":"a","peers":["a@h:1","b@h:2","c@h:3"],"initial_members":["a"]},"security":{"allow_plaintext_raft":true}}`,
			want: "cluster.initial_members",
		},
		"first members and no peers": {file: `{"cluster":{"node_id":"a","initial_members":["a","b","c"]}}`, want: "cluster.initial_members"},
		"self not a peer":            {file: `{"cluster":{"node_id":"z","peers":["a@h:1","b@h:2","c@h:3"]},"security":{"allow_plaintext_raft":true}}`, want: "cluster.peers"},
		"remotes insecure":           {file: `{"security":{"enabled":false},"remotes":{"allowed_hosts":["x"]}}`, want: "security.enabled"},
		"plaintext raft":             {file: `{"cluster":{"addr":":7943"}}`, want: "cluster.addr"},
		"produces below 0":           {file: `{"http":{"max_produce_in_flight_per_identity":-1}}`, want: "http.max_produce_in_flight_per_identity"},
		"held below 0":               {file: `{"remotes":{"max_held_bytes":-1}}`, want: "remotes.max_held_bytes"},
		"held insecure":              {file: `{"security":{"enabled":false},"remotes":{"max_held_bytes":0}}`, want: "security.enabled"},
		"codec":                      {file: `{"storage":{"codec":"gzip"}}`, want: "storage.codec"},
		"level":                      {file: `{"storage":{"codec":"zstd","compression_level":23}}`, want: "storage.compression_level"},
		"level 0":                    {file: `{"storage":{"compression_level":0}}`, want: "storage.compression_level"},
		"eviction":                   {file: `{"storage":{"idle_log_eviction_ms":999}}`, want: "storage.idle_log_eviction_ms"},
		"prealloc":                   {file: `{"storage":{"ingress_wal_prealloc":1}}`, want: "storage.ingress_wal_prealloc"},
		"log level":                  {file: `{"log":{"level":"loud"}}`, want: "log.level"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			env := append([]string{}, c.env...)
			if name != "plaintext raft" && name != "two peers" && name != "self not a peer" {
				env = append(env, loopback...)
			}
			s := Sources{Env: env, Flags: c.flag}
			if c.file != "" {
				s.File = write(t, c.file)
			}
			_, err := Load(s)
			var se *SettingError
			require.ErrorAs(t, err, &se)
			require.Equal(t, c.want, se.Setting, se.Error())
			require.NotEmpty(t, se.Why)
		})
	}
}

func TestFileThatIsNotThere(t *testing.T) {
	_, err := Load(Sources{File: filepath.Join(t.TempDir(), "none.json")})
	require.ErrorContains(t, err, "does not exist")
}

func TestDefaultsSurviveAFile(t *testing.T) {
	body, err := json.Marshal(Default())
	require.NoError(t, err)
	c, err := Load(Sources{File: write(t, string(body)), Env: loopback})
	require.NoError(t, err)
	c.Cluster.Addr = Default().Cluster.Addr
	require.Equal(t, Default(), c)
}

// covers: CRD-13
func TestSecretsDoNotPrint(t *testing.T) {
	s := SecretsFrom([]string{"NARAD_ADMIN_PASSWORD=canary-one", "NARAD_CLUSTER_SECRET=canary-two"})
	require.Equal(t, "canary-one", s.AdminPassword)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(verb, s), "canary")
		require.NotContains(t, fmt.Sprintf(verb, struct{ S Secrets }{s}), "canary")
	}
}
