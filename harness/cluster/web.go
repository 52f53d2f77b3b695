package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"narad.example/narad/client"
)

// readyLimit bounds the wait for a node that starts when the caller's context has no deadline.
const readyLimit = 60 * time.Second

// pollEvery is how often a node that starts is asked. There is nothing to watch: the answer is the event.
const pollEvery = 100 * time.Millisecond

// web is the rig's HTTP client for nodes, and its clients of the API.
type web struct {
	http *http.Client
	tr   *http.Transport
}

// newWeb trusts roots, nil for the system's.
func newWeb(roots *x509.CertPool) *web {
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second,
	}
	return &web{tr: tr, http: &http.Client{
		Transport: tr, Timeout: 60 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (w *web) close() { w.tr.CloseIdleConnections() }

func (w *web) client(base, user, password string) *client.Client {
	return client.New(client.Options{BaseURL: base, User: user, Password: password, HTTP: w.http})
}

// get returns the body of a 200.
func (w *web) get(ctx context.Context, url, user, password string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("get: %w", err)
	}
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	res, err := w.http.Do(req)
	if err != nil {
		return "", fmt.Errorf("get: %w", err)
	}
	body, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return "", fmt.Errorf("get: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("get: status %d", res.StatusCode)
	}
	return string(body), nil
}

// ready polls base(ctx)+path until it answers 200. ended closes when there is nothing left to wait for.
func (w *web) ready(ctx context.Context, name, path string, base func(context.Context) (string, error), ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	var last error
	for {
		url, err := base(ctx)
		if err == nil {
			if _, err = w.get(ctx, url+path, "", ""); err == nil {
				return nil
			}
		}
		if ctx.Err() == nil {
			last = err
		}
		t := time.NewTimer(pollEvery)
		select {
		case <-t.C:
		case <-ended:
			t.Stop()
			return fmt.Errorf("%s ended while it started; last answer: %w", name, last)
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%s is not ready: %w; last answer: %w", name, ctx.Err(), errors.Join(last))
		}
	}
}
