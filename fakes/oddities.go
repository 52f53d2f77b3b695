package fakes

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"narad.example/narad/wire"
)

// This file is the answers that no server of Go's library would send: the fake writes them on the connection by hand.

// floodChunk is how much of an endless answer goes out with one write.
const floodChunk = 4 << 10

// committed is the 202 of a batch as it stands on the wire, in the HTTP version named. A 1.0 answer has no length: it ends with the
// connection.
func committed(version string, q asked) []byte {
	body := accepted(q.records).body
	head := "HTTP/" + version + " 202 Accepted\r\nContent-Type: application/json\r\n"
	if q.requestID != "" {
		head += wire.HeaderRequestID + ": " + q.requestID + "\r\n"
	}
	if version != "1.0" {
		head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return append([]byte(head+"\r\n"), body...)
}

const earlyHints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"

// interim are three interim answers before the real one, which HTTP allows.
func interim(_ Reply, q asked) answer {
	return answer{how: verbatim, status: http.StatusAccepted, body: append([]byte(strings.Repeat(earlyHints, 3)), committed("1.1", q)...)}
}

// endlessInterim never comes to the real answer.
func endlessInterim(Reply, asked) answer {
	return answer{how: verbatim, status: http.StatusEarlyHints, flood: flood(earlyHints)}
}

func switching(Reply, asked) answer {
	return answer{how: verbatim, status: http.StatusSwitchingProtocols, body: []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")}
}

func oldHTTP(_ Reply, q asked) answer {
	return answer{how: verbatim, status: http.StatusAccepted, body: committed("1.0", q)}
}

func notHTTP(Reply, asked) answer {
	return answer{how: verbatim, body: []byte("220 mail.invalid ESMTP ready\r\n")}
}

func endlessBody(Reply, asked) answer {
	return answer{
		how: verbatim, status: http.StatusOK, body: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"),
		flood: fmt.Appendf(nil, "%x\r\n%s\r\n", floodChunk, strings.Repeat("x", floodChunk)),
	}
}

// hugeBody is written as it goes, so that it may be larger than memory.
func hugeBody(r Reply, _ asked) answer {
	size, status := int64(64<<20), cmp.Or(r.Status, http.StatusOK)
	if r.Bytes > 0 {
		size = int64(r.Bytes)
	}
	return answer{
		how: verbatim, status: status, flood: flood("x"), ends: size,
		body: fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", status, http.StatusText(status), size),
	}
}

// unasked is a good answer with a second one right behind it, which a caller that keeps the connection would take for that of its next
// request: it has no request's ID, as an answer of an older release has none. One that came later still, no caller could tell.
func unasked(_ Reply, q asked) answer {
	first := committed("1.1", q)
	q.requestID = ""
	return answer{how: verbatim, status: http.StatusAccepted, body: append(first, committed("1.1", q)...), stays: true}
}

func endlessHeader(Reply, asked) answer {
	return answer{how: verbatim, status: http.StatusAccepted, body: []byte("HTTP/1.1 202 Accepted\r\n"), flood: flood("X-More: and more\r\n")}
}

func flood(piece string) []byte { return []byte(strings.Repeat(piece, floodChunk/len(piece)+1)) }

// twice is a 429 with two Retry-After headers that do not agree; the one that the step names comes first.
func twice(r Reply, q asked) answer {
	a := narad(http.StatusTooManyRequests, "too many requests")(r, q)
	if r.RetryAfter == "" {
		a.header["Retry-After"] = "1"
	}
	a.also = [2]string{"Retry-After", "45"}
	return a
}

// verbatim writes an answer as it stands, its flood until the caller goes away, and ends the connection. It tells whether all that has
// an end went out.
func (v *visit) verbatim(w http.ResponseWriter, a answer) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = conn.Close() }()
	unhook := context.AfterFunc(v.f.ctx, func() { _ = conn.Close() })
	defer unhook()
	if _, err = conn.Write(a.body); err != nil {
		return false
	}
	for left := a.ends; err == nil && len(a.flood) > 0; {
		piece := a.flood
		if a.ends > 0 {
			if left == 0 {
				break
			}
			piece = piece[:min(left, int64(len(piece)))]
			left -= int64(len(piece))
		}
		_, err = conn.Write(piece)
	}
	if err == nil && a.stays {
		_, _ = io.Copy(io.Discard, conn) // until the caller goes away
	}
	return err == nil
}
