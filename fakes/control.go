package fakes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"narad.example/harness/ledger"
)

// ConfigEnv is the environment variable that carries a TapConfig or TargetConfig as JSON into a container.
const ConfigEnv = "CHAOS_CONFIG"

// ReadConfig reads a TapConfig or a TargetConfig from the file at path, or from ConfigEnv when path is "". A member that it
// does not know is an error.
func ReadConfig[T TapConfig | TargetConfig](path string) (T, error) {
	var c T
	var in io.Reader
	if path == "" {
		text := os.Getenv(ConfigEnv)
		if text == "" {
			return c, fmt.Errorf("config: neither a file nor %s is given", ConfigEnv)
		}
		in = strings.NewReader(text)
	} else {
		f, err := os.Open(path)
		if err != nil {
			return c, fmt.Errorf("config: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("config: %w", err)
	}
	return c, nil
}

const settledHeader = "X-Settled"

// controlRoutes serves GET /requests?from=SEQ (JSON lines), GET /steps, GET /healthz, and the edge's faces: GET /faces and
// POST /face?show=NAME. It takes nothing else.
func controlRoutes(rec *recorder, steps func() []ledger.Step, edge *faces) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /faces", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(edge.met()) // a caller that is gone needs none
	})
	mux.HandleFunc("POST /face", func(w http.ResponseWriter, r *http.Request) {
		if err := edge.set(r.URL.Query().Get("show")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /steps", func(w http.ResponseWriter, _ *http.Request) {
		list := []ledger.Step{}
		if steps != nil {
			list = steps()
		}
		_ = json.NewEncoder(w).Encode(list) // a caller that is gone needs none
	})
	mux.HandleFunc("GET /requests", func(w http.ResponseWriter, r *http.Request) {
		from, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
		if err != nil {
			http.Error(w, "from must be a sequence number", http.StatusBadRequest)
			return
		}
		list, settled, err := rec.requests(r.Context(), from)
		if err != nil {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/jsonl")
		w.Header().Set(settledHeader, strconv.FormatInt(settled, 10))
		enc := json.NewEncoder(w)
		for i := range list {
			if enc.Encode(&list[i]) != nil {
				return
			}
		}
	})
	return mux
}

// Reader reads the control endpoint of a tap or a fake. It keeps what cannot change any more, so that asking again costs only
// what is new. One caller at a time.
type Reader struct {
	HTTP    *http.Client
	settled []ledger.WireRequest
}

// Requests returns every request seen so far. base is the endpoint's URL, which may differ from call to call: a container's
// published port does.
func (rd *Reader) Requests(ctx context.Context, base string) ([]ledger.WireRequest, error) {
	from := int64(len(rd.settled)) + 1
	res, err := rd.ask(ctx, http.MethodGet, base+"/requests?from="+strconv.FormatInt(from, 10))
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	settled, err := strconv.ParseInt(res.Header.Get(settledHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("tap control: %w", err)
	}
	all := rd.settled
	dec := json.NewDecoder(res.Body)
	for {
		var r ledger.WireRequest
		err = dec.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("tap control: %w", err)
		}
		all = append(all, r)
	}
	if settled < from || settled-1 > int64(len(all)) {
		return nil, fmt.Errorf("tap control: %d requests but settled below %d", len(all), settled)
	}
	rd.settled = all[:settled-1]
	return append([]ledger.WireRequest(nil), all...), nil
}

// Steps returns the fake's script steps with their use.
func (rd *Reader) Steps(ctx context.Context, base string) ([]ledger.Step, error) {
	res, err := rd.ask(ctx, http.MethodGet, base+"/steps")
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var out []ledger.Step
	if err = json.NewDecoder(res.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("fake control: %w", err)
	}
	return out, nil
}

// Met returns what the edge met so far, by face.
func (rd *Reader) Met(ctx context.Context, base string) (map[string]FaceCount, error) {
	res, err := rd.ask(ctx, http.MethodGet, base+"/faces")
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var out map[string]FaceCount
	if err = json.NewDecoder(res.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("edge control: %w", err)
	}
	return out, nil
}

// Show changes the face of the edge.
func (rd *Reader) Show(ctx context.Context, base, face string) error {
	res, err := rd.ask(ctx, http.MethodPost, base+"/face?show="+url.QueryEscape(face))
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (rd *Reader) ask(ctx context.Context, method, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	res, err := rd.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("control: status %d", res.StatusCode), res.Body.Close())
	}
	return res, nil
}
