package wire

import (
	"errors"
	"fmt"
	"time"
)

// Kind says why a request was refused. Package api turns it into a status; nothing else does.
type Kind uint8

// The kinds, each with the status that package api gives it.
const (
	Internal     Kind = iota // 500: ours to mend; the text is never shown beyond "internal error"
	Invalid                  // 400
	Unauthorized             // 401
	Denied                   // 403
	NotFound                 // 404
	Conflict                 // 409
	Gone                     // 410
	Precondition             // 412
	TooLarge                 // 413
	Unsupported              // 415
	Throttled                // 429
	BadGateway               // 502
	Unavailable              // 503
)

// Problem is a refusal that a client may read: what is wrong, where, and what to do. Its text never carries a secret, nor
// the value that was sent (DEC-20), nor anything that a target answered (LOG-01).
type Problem struct {
	Kind       Kind
	Text       string
	RetryAfter time.Duration  // whole seconds in the answer; 0 is none
	Fields     map[string]any // further members of the answer beside "error", such as "links" or "class"
}

// Refuse makes a Problem.
func Refuse(k Kind, format string, args ...any) *Problem {
	return &Problem{Kind: k, Text: fmt.Sprintf(format, args...)}
}

func (p *Problem) Error() string { return p.Text }

// With returns a copy with one more member of the answer.
func (p *Problem) With(name string, value any) *Problem {
	q := *p
	q.Fields = make(map[string]any, len(p.Fields)+1)
	for k, v := range p.Fields {
		q.Fields[k] = v
	}
	q.Fields[name] = value
	return &q
}

// After returns a copy that asks the client to come back after d.
func (p *Problem) After(d time.Duration) *Problem {
	q := *p
	q.RetryAfter = d
	return &q
}

// KindOf is the kind of the first Problem in err's chain, Internal when there is none.
func KindOf(err error) Kind {
	var p *Problem
	if errors.As(err, &p) {
		return p.Kind
	}
	return Internal
}

// ErrorBody is the body of every refusal.
type ErrorBody struct {
	Error string `json:"error"`
}
