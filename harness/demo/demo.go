// Package demo prepares and connects the two clusters of docker-compose.yml: certificates, settings and secrets before they
// start, topic, remote and link after. It starts nothing itself.
package demo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"

	"narad.example/fakes"
	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// Names and ports of docker-compose.yml.
const (
	sourceURL    = "http://127.0.0.1:17942"
	targetURL    = "https://127.0.0.1:27942"
	linkURL      = "https://link:20001"
	toxiproxyAPI = "127.0.0.1:8474"
	topic        = "orders"
	linkUser     = "link"
	envName      = ".env"
	caName       = "ca.pem"
)

// Prepare writes settings, certificates and secrets into dir, and the file that docker-compose reads them from. Secrets that
// are there already stay, so that a second start opens the volumes of the first.
func Prepare(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err = os.Stat(filepath.Join(abs, envName)); err == nil {
		return nil
	}
	ca, err := fakes.NewCA(time.Now())
	if err != nil {
		return err
	}
	cert, err := ca.Issue(time.Now(), "link", "target", "127.0.0.1")
	if err != nil {
		return err
	}
	source := map[string]any{
		"cluster": map[string]any{"node_id": "source-1", "addr": "127.0.0.1:7943"}, "storage": map[string]any{"data_dir": "/data"},
		"remotes": map[string]any{"allowed_ports": []int{20001}, "api_hop_encrypted": true},
	}
	target := map[string]any{
		"cluster": map[string]any{"node_id": "target-1", "addr": "127.0.0.1:7943"}, "storage": map[string]any{"data_dir": "/data"},
		"http": map[string]any{"tls_cert_file": "/etc/narad/cert.pem", "tls_key_file": "/etc/narad/key.pem"},
	}
	var env strings.Builder
	fmt.Fprintf(&env, "COMPOSE_PROJECT_NAME=narad-demo\nDEMO_DIR=%s\n", abs)
	for _, name := range []string{"DEMO_SOURCE_PASSWORD", "DEMO_TARGET_PASSWORD", "DEMO_SOURCE_SECRET", "DEMO_TARGET_SECRET", "DEMO_LINK_PASSWORD"} {
		fmt.Fprintf(&env, "%s=%s\n", name, secret())
	}
	return errors.Join(
		put(filepath.Join(abs, "source", "narad.json"), source), put(filepath.Join(abs, "target", "narad.json"), target),
		write(filepath.Join(abs, "target", "cert.pem"), cert.CertPEM), write(filepath.Join(abs, "target", "key.pem"), cert.KeyPEM),
		write(filepath.Join(abs, caName), ca.PEM()), write(filepath.Join(abs, envName), env.String()),
	)
}

func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}

func put(path string, v any) error {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return write(path, string(body)+"\n")
}

func write(path, body string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(body), 0o600)
}

// Connect makes topic, user, remote and link once both clusters answer, produces records and waits until they are on the
// target. It may run again: what is there already stays.
func Connect(ctx context.Context, dir string, out io.Writer) error {
	env, err := readEnv(filepath.Join(dir, envName))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(dir, caName))
	if err != nil {
		return fmt.Errorf("run the demo's prepare first: %w", err)
	}
	web, err := trusting(ca)
	if err != nil {
		return err
	}
	source := client.New(client.Options{BaseURL: sourceURL, User: "admin", Password: env["DEMO_SOURCE_PASSWORD"], HTTP: web})
	target := client.New(client.Options{BaseURL: targetURL, User: "admin", Password: env["DEMO_TARGET_PASSWORD"], HTTP: web})
	for name, c := range map[string]*client.Client{"source": source, "target": target} {
		if err = ready(ctx, c); err != nil {
			return fmt.Errorf("the %s cluster does not answer: %w", name, err)
		}
	}
	if err = through(ctx); err != nil {
		return err
	}
	for _, c := range []*client.Client{source, target} {
		if _, err = c.CreateTopic(ctx, wire.CreateTopic{Name: topic}); there(err) != nil {
			return err
		}
	}
	_, err = target.Users().Create(ctx, wire.CreateUser{
		Username: linkUser, Password: env["DEMO_LINK_PASSWORD"], Grants: []wire.Grant{{Action: wire.ActionProduce, Patterns: []string{topic}}},
	})
	if there(err) != nil {
		return err
	}
	_, err = source.Remotes().Create(ctx, wire.CreateRemote{
		Name: "b", URL: linkURL, Username: linkUser, Password: env["DEMO_LINK_PASSWORD"], CAPEM: string(ca),
	})
	if there(err) != nil {
		return err
	}
	if _, err := source.AttachRemote(ctx, topic, wire.AttachChild{Child: "orders-to-b", Remote: "b", Lanes: 4}); there(err) != nil {
		return err
	}
	return ship(ctx, source, out)
}

// through makes the one proxy of the demo's toxiproxy, unless an earlier start has made it.
func through(ctx context.Context) error {
	api := toxiproxy.NewClient(toxiproxyAPI)
	for {
		proxies, err := api.Proxies()
		if err == nil {
			if _, ok := proxies["link"]; ok {
				return nil
			}
			_, err = api.CreateProxy("link", "0.0.0.0:20001", "target:7942")
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("toxiproxy does not answer: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ship produces 1,000 records and waits until the link has no lag.
func ship(ctx context.Context, source *client.Client, out io.Writer) error {
	recs := make([]wire.NewRecord, 1000)
	for i := range recs {
		recs[i] = wire.NewRecord{Key: fmt.Appendf(nil, "customer-%d", i%50), Payload: fmt.Appendf(nil, `{"order":%d}`, i), Partition: -1}
	}
	if err := source.ProduceBatch(ctx, topic, "", recs); err != nil {
		return err
	}
	for {
		list, err := source.Children(ctx, topic, false)
		if err != nil {
			return err
		}
		if len(list.Children) == 1 && list.Children[0].LagComplete && list.Children[0].LagMessages == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the records did not reach the target: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
	_, err := fmt.Fprintf(out, "The link %s/orders-to-b runs: 1,000 records went from %s through toxiproxy to %s.\n"+
		"User admin; the passwords are in the demo's .env. toxiproxy's API is 127.0.0.1:8474. `make demo-down` removes all.\n",
		topic, sourceURL, targetURL)
	return err
}

// there turns the refusal of something that exists already into success.
func there(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == 409 {
		return nil
	}
	return err
}

func ready(ctx context.Context, c *client.Client) error {
	for {
		_, err := c.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func readEnv(path string) (map[string]string, error) {
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("run the demo's prepare first: %w", err)
	}
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[k] = v
		}
	}
	return env, nil
}
