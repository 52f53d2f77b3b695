package fakes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"unicode/utf8"

	"narad.example/narad/wire"
)

// serve is the store's answer to a request with its body, in the order of refusals of api.md: 401, 415, 404.
func (f *Target) serve(r *http.Request, body []byte) answer {
	user, password, ok := r.BasicAuth()
	if want, known := f.users[user]; !ok || !known || want != password {
		return unauthorized(Reply{}, asked{})
	}
	if r.Method == http.MethodPost && !guarded(r) {
		return narad(415, "content type required")(Reply{}, asked{})
	}
	name, _ := topicOf(r)
	switch routeOf(r) {
	case "produce":
		if r.URL.RawQuery != "" {
			return problem(refuse(400, "key and partition are members of a message"))
		}
		n, bad := f.store.produce(name, r.Header.Get(wire.HeaderIfTopicID), func() ([]record, error) {
			return decodeBatch(body, r.Header.Get("Content-Encoding"))
		})
		if bad != nil {
			return problem(bad)
		}
		return accepted(n)
	case "topic":
		return f.store.describe(name)
	case "children":
		return f.store.listing(name)
	case "consume":
		return f.store.replay(name, r.URL.Query().Get("partition"), r.URL.Query().Get("offset"))
	case "users":
		return narad(403, "admin required")(Reply{}, asked{})
	}
	return bare404(Reply{}, asked{})
}

// guarded tells whether a browser's form could not have sent r.
func guarded(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || kind == "application/octet-stream") || r.Header.Get(wire.HeaderClient) != ""
}

func problem(bad *refusal) answer { return narad(bad.status, bad.text)(Reply{}, asked{}) }

func jsonAnswer(v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		return narad(500, "internal error")(Reply{}, asked{})
	}
	return answer{status: 200, header: map[string]string{"Content-Type": "application/json"}, body: append(body, '\n')}
}

// describe answers GET /v1/topics/{t}.
func (s *store) describe(name string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	if t == nil {
		return problem(refuse(404, "topic not found"))
	}
	d := wire.TopicDetail{
		Topic: wire.Topic{
			Name: t.name, ID: t.id, Partitions: len(t.partitions), Role: wire.Standalone, CreatedAt: t.created.Unix(),
			VisibilityTimeoutMS: 30_000, MaxInFlightPerPartition: 1024, MaxAckedAheadPerPartition: 1024,
		},
		PartitionStats: []wire.PartitionStats{},
	}
	for _, c := range t.children {
		d.Role = wire.Parent
		d.Children = append(d.Children, c.Name)
	}
	for i, p := range t.partitions {
		n := int64(len(p))
		d.PartitionStats = append(d.PartitionStats, wire.PartitionStats{
			Index: i, Segments: 1, NextOffset: n, HighWatermark: n, OwnerNode: "fake", Status: "ok", OldestSegmentAt: t.created.Unix(),
		})
	}
	return jsonAnswer(d)
}

// listing answers GET /v1/topics/{t}/children.
func (s *store) listing(name string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	if t == nil {
		return problem(refuse(404, "topic not found"))
	}
	out := wire.Children{Parent: t.name, ParentID: t.id, Children: []wire.ChildEntry{}}
	for _, c := range t.children {
		e := wire.ChildEntry{Name: c.Name, LagComplete: true}
		if c.Remote != "" {
			e.RemoteEntry = &wire.RemoteEntry{Remote: c.Remote, State: wire.Running}
		}
		out.Children = append(out.Children, e)
	}
	return jsonAnswer(out)
}

// replay answers GET /v1/topics/{t}/consume?partition&offset, the only consume that the fake knows.
func (s *store) replay(name, partition, offset string) answer {
	p, perr := strconv.Atoi(partition)
	o, oerr := strconv.ParseInt(offset, 10, 64)
	if perr != nil || oerr != nil {
		return problem(refuse(400, "this target serves replays only: partition and offset required"))
	}
	rec, ok, bad := s.read(name, p, o)
	if bad != nil {
		return problem(bad)
	}
	if !ok {
		return answer{status: http.StatusNoContent}
	}
	head := struct {
		Topic           string `json:"topic"`
		Partition       int    `json:"partition"`
		Offset          int64  `json:"offset"`
		Timestamp       int64  `json:"timestamp"`
		Key             string `json:"key,omitempty"`
		KeyEncoding     string `json:"key_encoding,omitempty"`
		PayloadEncoding string `json:"payload_encoding,omitempty"`
	}{Topic: name, Partition: p, Offset: o, Timestamp: rec.at.Unix(), Key: string(rec.key)}
	if !utf8.Valid(rec.key) {
		head.Key, head.KeyEncoding = base64.StdEncoding.EncodeToString(rec.key), wire.Base64
	}
	// The payload is put in by hand: an encoder would compact and escape it, and the bytes are what matters (DEC-33).
	payload := rec.payload
	switch {
	case !utf8.Valid(payload):
		head.PayloadEncoding = wire.Base64
		payload = strconv.AppendQuote(nil, base64.StdEncoding.EncodeToString(rec.payload))
	case !json.Valid(payload):
		quoted, err := json.Marshal(string(rec.payload))
		if err != nil {
			return narad(500, "internal error")(Reply{}, asked{})
		}
		payload = quoted
	}
	a := jsonAnswer(head)
	a.body = append(bytes.TrimSuffix(a.body, []byte("}\n")), `,"payload":`...)
	a.body = append(append(a.body, payload...), "}\n"...)
	return a
}
