package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"narad.example/narad/wire"
)

// Body limits of the routes that take JSON (api.md, limits).
const (
	maxBody        = 1 << 20
	maxAckBody     = 64 << 10
	maxRemotesBody = 128 << 10
)

// read reads a body of at most limit bytes. What is over it is refused with kind over.
func (c *call) read(limit int64, over wire.Kind) ([]byte, error) {
	tooLarge := wire.Refuse(over, "the body is over %d bytes", limit)
	if c.r.ContentLength > limit {
		return nil, tooLarge
	}
	var dst []byte
	if c.r.ContentLength > 0 {
		dst = make([]byte, 0, c.r.ContentLength+1) // one more, to see the end without growing
	}
	body, err := fill(dst, http.MaxBytesReader(c.ResponseWriter, c.r.Body, limit), limit, nil)
	if err != nil {
		return nil, bodyError(err, tooLarge)
	}
	return body, nil
}

// bodyError words an error of reading a body.
func bodyError(err error, tooLarge *wire.Problem) error {
	var over *http.MaxBytesError
	var p *wire.Problem
	switch {
	case errors.As(err, &over) || errors.Is(err, errOver):
		return tooLarge
	case errors.As(err, &p):
		return p
	}
	return errCut
}

var errOver = errors.New("over the limit")

// fill reads src to its end into dst, growing it. grow, when not nil, is asked before dst grows to so many bytes.
func fill(dst []byte, src io.Reader, limit int64, grow func(total int64) error) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			size := min(max(2*int64(cap(dst)), 4<<10), limit+1)
			if int64(len(dst)) > limit {
				return dst, errOver
			}
			if grow != nil {
				if err := grow(size); err != nil {
					return dst, err
				}
			}
			dst = append(make([]byte, 0, size), dst...)
		}
		n, err := src.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if int64(len(dst)) > limit {
			return dst, errOver
		}
		if err == io.EOF { // a Reader returns io.EOF itself
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// decode reads one JSON object into v. An unknown field, a second value or a wrong type is refused; the text names fields of ours,
// never what was sent (DEC-20).
func (c *call) decode(limit int64, over wire.Kind, v any) error {
	body, err := c.read(limit, over)
	if err != nil {
		return err
	}
	return decodeJSON(body, v)
}

func decodeJSON(body []byte, v any) error {
	if !wire.ValidJSON(body) {
		return wire.Refuse(wire.Invalid, "invalid json")
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil && strings.HasPrefix(strings.TrimLeft(string(body), " \t\r\n"), "{"):
		return nil
	case err == nil: // null
		return wire.Refuse(wire.Invalid, "invalid json: an object is expected")
	case errors.As(err, &wrong) && wrong.Field != "":
		return wire.Refuse(wire.Invalid, "invalid json: %s has the wrong type", wrong.Field)
	case errors.As(err, &wrong):
		return wire.Refuse(wire.Invalid, "invalid json: an object is expected")
	}
	return wire.Refuse(wire.Invalid, "invalid json: unknown field")
}
