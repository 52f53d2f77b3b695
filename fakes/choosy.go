package fakes

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

// This file is the answers that depend on the request: on its form, on its credential, on the topic that it asks for.

// raw answers for the first record that did not come as base64.
func raw(_ *http.Request, _ []byte, records []record) (int, bool) {
	i := slices.IndexFunc(records, func(r record) bool { return !r.Base64 })
	return i, i >= 0
}

func compressed(r *http.Request, _ []byte, _ []record) (int, bool) {
	return -1, r.Header.Get("Content-Encoding") != ""
}

// overHundred counts the messages of the body, since those of the probe have no payload and are no records.
func overHundred(r *http.Request, body []byte, _ []record) (int, bool) {
	plain, err := inflate(body, r.Header.Get("Content-Encoding"))
	if err != nil {
		return -1, false
	}
	messages, err := readMessages(plain)
	return -1, err == nil && len(messages) > 100
}

// echo says the credential back wherever an answer has room for words. A 3xx names it in its Location, on no host that exists.
func echo(r Reply, q asked) answer {
	status := cmp.Or(r.Status, http.StatusUnauthorized)
	said := fmt.Sprintf("%s user %s password %s", q.authorization, q.user, q.pass)
	body := fmt.Sprintf("{\"error\":%q}\n", "message 0: "+said)
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, said)
	for _, h := range []string{"WWW-Authenticate: Basic realm=%q", "X-Echo: %s", "Set-Cookie: session=%s", "Location: https://elsewhere.invalid/%s"} {
		fmt.Fprintf(&b, h+"\r\n", said)
	}
	b.WriteString("Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: X-Echo-Trailer\r\n")
	if q.requestID != "" {
		b.WriteString(wire.HeaderRequestID + ": " + q.requestID + "\r\n")
	}
	fmt.Fprintf(&b, "\r\n%x\r\n%s\r\n0\r\nX-Echo-Trailer: %s\r\n\r\n", len(body), body, said)
	return answer{how: verbatim, status: status, body: []byte(b.String())}
}

func listing(q asked, id string, children ...wire.ChildEntry) answer {
	return jsonAnswer(wire.Children{Parent: q.topic, ParentID: id, Children: append([]wire.ChildEntry{}, children...)})
}

// oldListing is what a release before remote children answers.
func oldListing(_ Reply, q asked) answer {
	return jsonAnswer(map[string]any{"parent": q.topic, "children": []any{}})
}

func recreatedListing(_ Reply, q asked) answer { return listing(q, "00000000deadbeef") }

func chainedListing(_ Reply, q asked) answer {
	return listing(q, q.id, wire.ChildEntry{Name: q.topic + "-on", LagComplete: true, RemoteEntry: &wire.RemoteEntry{Remote: "c", State: wire.Running}})
}

func delayTopic(_ Reply, q asked) answer {
	return jsonAnswer(wire.TopicDetail{
		Topic:          wire.Topic{Name: q.topic, ID: q.id, Partitions: q.parts, Role: wire.Child, Parent: q.topic + "-first", FanoutDelayMS: 60_000, CreatedAt: time.Now().Unix()},
		PartitionStats: []wire.PartitionStats{},
	})
}

func toElsewhere(r Reply, q asked) answer {
	a := plain(http.StatusTemporaryRedirect, "text/html", "moved")(r, q)
	a.header["Location"] = cmp.Or(q.elsewhere, "https://elsewhere.invalid") + q.path
	return a
}

// startElsewhere serves the host of a redirect. It takes every batch with a 202, so that a caller which follows goes on, and writes down
// whether a credential came.
func (f *Target) startElsewhere(c TargetConfig, conf *tls.Config) error {
	var err error
	f.elsewhereURL = c.ElsewhereURL
	f.other, err = c.Net.start(c.Elsewhere, conf, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{f: f, r: r, line: requestLine(r)}
		v.line.At, v.line.Step = f.rec.now(), ledger.ElsewhereBare
		if r.Header.Get("Authorization") != "" {
			v.line.Step = ledger.ElsewhereCredential
		}
		body, _ := io.ReadAll(io.LimitReader(r.Body, maxKept)) // one that was cut came all the same
		records, _ := decodeBatch(body, r.Header.Get("Content-Encoding"))
		v.line.Bytes = len(body)
		v.send(w, accepted(len(records)), ledger.WireElsewhere)
	}))
	if err != nil {
		return fmt.Errorf("elsewhere: %w", err)
	}
	if c.ElsewhereURL == "" {
		f.elsewhereURL = "https://" + f.other.addr()
	}
	return nil
}
