package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

var errRequest = errors.New("outbound: the request cannot be written as HTTP")

// requestHead writes the request line and the headers. What could break out of its line is refused.
func (c *Client) requestHead(r *Request) (string, error) {
	if !token(r.Method) || !path(r.Path) || !headerValue(r.ContentEncoding) || !headerValue(r.RequestID) {
		return "", errRequest
	}
	var b strings.Builder
	b.Grow(len(c.head) + len(c.auth) + len(r.Path) + 256)
	b.WriteString(r.Method + " " + c.base + r.Path + " HTTP/1.1\r\n")
	b.WriteString(c.head)
	if !r.Anonymous {
		b.WriteString(c.auth)
	}
	if r.Method != http.MethodGet || len(r.Body) > 0 {
		b.WriteString("Content-Type: application/json\r\nContent-Length: ")
		b.WriteString(strconv.Itoa(len(r.Body)))
		b.WriteString("\r\n")
	}
	if r.ContentEncoding != "" {
		b.WriteString("Content-Encoding: " + r.ContentEncoding + "\r\n")
	}
	if r.RequestID != "" {
		b.WriteString("X-Narad-Request-Id: " + r.RequestID + "\r\n")
	}
	for name, values := range r.Header {
		for _, v := range values {
			if !httpguts.ValidHeaderFieldName(name) || !headerValue(v) {
				return "", errRequest
			}
			b.WriteString(name + ": " + v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.String(), nil
}

func token(s string) bool { return s != "" && httpguts.ValidHeaderFieldName(s) }

func headerValue(s string) bool { return httpguts.ValidHeaderFieldValue(s) }

// path takes what may stand in a request line: printable ASCII from a slash.
func path(s string) bool {
	if !strings.HasPrefix(s, "/") {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
