package bench

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"narad.example/fakes"
	"narad.example/harness/spawn"
	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// Names of files in the stand's folder.
const (
	certName = "cert.pem"
	keyName  = "key.pem"
	caName   = "ca.pem"
)

const (
	adminUser  = "admin"
	linkUser   = "link"
	remoteName = "b"
	zstdRemote = "b-zstd"
	farRemote  = "b-far" // behind farRoundTrip
	host       = "127.0.0.1"
	readyLimit = 60 * time.Second
)

// stand is one run's folder, certificates and processes. close removes all of it.
type stand struct {
	o        Options
	dir      string
	ca       string // PEM
	http     *http.Client
	tr       *http.Transport
	spawn    spawner
	password string // of every admin
	ports    map[int]bool
	nodes    []*node
	round    int

	pair    *pair           // started when first needed
	three   *several        // the same
	far     *delayLine      // to the target of the pair
	filled  map[string]bool // backlogs that are there, by node and topic
	remotes int             // of drainLinks, that are there
	copies  int             // names topics apart

	mu sync.Mutex // guards the write of one progress line
}

// node is a broker in a process of its own.
type node struct {
	*process
	addr   string // host:port of the API
	client *client.Client
	pprof  string // host:port, empty without profiles
}

// pair is a source and a target with nothing between them.
type pair struct {
	source, target *node
	password       string // of the links' user
}

func newStand(o Options) (*stand, error) {
	ca, err := fakes.NewCA(time.Now())
	if err != nil {
		return nil, err
	}
	cert, err := ca.Issue(time.Now(), host)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ca.PEM()))
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 64}
	dir, err := os.MkdirTemp("", "narad-bench-*")
	if err != nil {
		return nil, err
	}
	s := &stand{
		o: o, dir: dir, ca: ca.PEM(), tr: tr, http: &http.Client{Transport: tr, Timeout: time.Minute}, spawn: spawner{spawn.New()},
		password: secret(), ports: map[int]bool{}, filled: map[string]bool{},
	}
	for name, body := range map[string]string{certName: cert.CertPEM, keyName: cert.KeyPEM, caName: ca.PEM()} {
		if err := os.WriteFile(s.path(name), []byte(body), 0o600); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// close ends every process and removes the folder.
func (s *stand) close() error {
	for _, n := range s.nodes {
		n.kill()
	}
	if s.far != nil {
		s.far.close()
	}
	s.spawn.Close()
	s.tr.CloseIdleConnections()
	return os.RemoveAll(s.dir)
}

func secret() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Ports are taken below the range from which systems take the ports of outgoing connections.
const firstPort, lastPort = 31000, 32700

func (s *stand) port() (string, error) {
	for port := firstPort + os.Getpid()%(lastPort-firstPort); port < firstPort+2*(lastPort-firstPort); port++ {
		p := firstPort + port%(lastPort-firstPort)
		addr := net.JoinHostPort(host, strconv.Itoa(p))
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
		if s.ports[p] || err != nil {
			if err == nil {
				_ = l.Close()
			}
			continue
		}
		s.ports[p] = true
		return addr, l.Close()
	}
	return "", fmt.Errorf("no free port from %d to %d", firstPort, lastPort)
}

// settings are a node's, by section.
type settings map[string]map[string]any

// start runs a node of its own and waits until it is ready.
func (s *stand) start(ctx context.Context, name string, more settings) (*node, error) {
	p, err := s.place(name)
	if err != nil {
		return nil, err
	}
	n, err := s.launch(p, clusterKey(), more)
	if err != nil {
		return nil, err
	}
	return n, n.ready(ctx)
}

// launch runs a node, which is not ready yet.
func (s *stand) launch(p placed, key string, more settings) (*node, error) {
	n := &node{addr: p.api}
	web := map[string]any{"addr": n.addr}
	if s.o.Profile != "" {
		n.pprof = p.pprof
		web["pprof_addr"] = n.pprof
	}
	c := settings{
		"http": web, "storage": {"data_dir": s.path(p.name)},
		"cluster": {"node_id": p.name, "addr": p.raft, "rpc_addr": p.rpc},
	}
	scheme := "http://"
	for section, values := range more {
		for k, v := range values {
			if c[section] == nil {
				c[section] = map[string]any{}
			}
			c[section][k] = v
			if k == "tls_cert_file" && section == "http" {
				scheme = "https://"
			}
		}
	}
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	file := s.path(p.name + ".json")
	if err = os.WriteFile(file, body, 0o600); err != nil {
		return nil, err
	}
	env := append(childEnv(), "NARAD_ADMIN_PASSWORD="+s.password, "NARAD_CLUSTER_SECRET="+key)
	n.process, err = s.spawn.launch(p.name, s.path(p.name+".log"), env, []string{s.o.Narad, "serve", "--config", file}, nil)
	if err != nil {
		return nil, err
	}
	s.nodes = append(s.nodes, n)
	n.client = client.New(client.Options{BaseURL: scheme + n.addr, User: adminUser, Password: s.password, HTTP: s.http})
	return n, nil
}

func (n *node) ready(ctx context.Context) error {
	return poll(ctx, readyLimit, 50*time.Millisecond, n.name+" to be ready", func(ctx context.Context) (bool, error) {
		_, err := n.client.Ready(ctx)
		return err == nil, n.check()
	})
}

// poll asks until the answer is yes or an error; what names the wait that was too long.
func poll(ctx context.Context, limit, every time.Duration, what string, ask func(context.Context) (bool, error)) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("waited %s for %s", limit, what))
	defer cancel()
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if done, err := ask(limited); done || err != nil && limited.Err() == nil {
			return err
		}
		select {
		case <-t.C:
		case <-limited.Done():
			return context.Cause(limited)
		}
	}
}

// direct starts the pair when it is first needed: the target serves HTTPS itself, a user of it may produce, and the source
// has a remote with that user.
func (s *stand) direct(ctx context.Context) (*pair, error) {
	if s.pair != nil {
		return s.pair, errors.Join(s.pair.source.check(), s.pair.target.check())
	}
	target, password, err := s.linkTarget(ctx, "target-1")
	if err != nil {
		return nil, err
	}
	if s.far, err = newDelayLine(net.JoinHostPort(host, "0"), target.addr, farRoundTrip); err != nil {
		return nil, err
	}
	source, err := s.linkSource(ctx, "source-1", target.addr, s.far.addr)
	if err != nil {
		return nil, err
	}
	for _, r := range []wire.CreateRemote{
		{Name: remoteName, URL: "https://" + target.addr},
		{Name: zstdRemote, URL: "https://" + target.addr, Limits: &wire.Limits{Compression: codecZstd}},
		{Name: farRemote, URL: "https://" + s.far.addr, Limits: &wire.Limits{MaxInFlight: 64}},
	} {
		if err = s.remote(ctx, source, password, r); err != nil {
			return nil, err
		}
	}
	s.pair = &pair{source: source, target: target, password: password}
	return s.pair, nil
}

// linkTarget starts a node that serves HTTPS itself and has the links' user, whose password it returns.
func (s *stand) linkTarget(ctx context.Context, name string) (n *node, password string, err error) {
	n, err = s.start(ctx, name, settings{"http": {"tls_cert_file": s.path(certName), "tls_key_file": s.path(keyName)}})
	if err != nil {
		return nil, "", err
	}
	password = secret()
	_, err = n.client.Users().Create(ctx, wire.CreateUser{
		Username: linkUser, Password: password, Grants: []wire.Grant{{Action: wire.ActionProduce, Patterns: []string{"*"}}},
	})
	if err != nil {
		return nil, "", fmt.Errorf("user of the link: %w", err)
	}
	return n, password, nil
}

// linkSource starts a node whose remotes may be at these addresses.
func (s *stand) linkSource(ctx context.Context, name string, targets ...string) (*node, error) {
	ports, err := portsOf(targets...)
	if err != nil {
		return nil, err
	}
	return s.start(ctx, name, settings{"remotes": remotesAt(ports)})
}

// remotesAt are the settings of a node whose remotes may be on these ports of this machine.
func remotesAt(ports []int) map[string]any {
	return map[string]any{"allowed_ports": ports, "allow_addresses": []string{host}, "api_hop_encrypted": true}
}

func (s *stand) remote(ctx context.Context, n *node, password string, r wire.CreateRemote) error {
	r.Username, r.Password, r.CAPEM = linkUser, password, s.ca
	if _, err := n.client.Remotes().Create(ctx, r); err != nil {
		return fmt.Errorf("remote %s: %w", r.Name, err)
	}
	return nil
}

func portsOf(addrs ...string) (ports []int, err error) {
	for _, addr := range addrs {
		_, text, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// cpu is the CPU time of both nodes until now.
func (p *pair) cpu() (time.Duration, error) {
	a, err := p.source.cpu()
	b, errTarget := p.target.cpu()
	return a + b, errors.Join(err, errTarget)
}
