package target

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"strings"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// Doer sends one request to a target; *outbound.Client is the one that is not a test's. Its error is an *outbound.Failure.
type Doer interface {
	Do(ctx context.Context, r *outbound.Request) (*outbound.Answer, error)
}

// Rows that have no row of the answer table. Each names where its rule stands.
const (
	RowNone     = ""       // a Narad-shaped answer whose meaning depends on what was asked
	RowBare404  = "bare"   // Go's own text: ANS-11 or ANS-12, whichever the children listing says
	RowReplaced = "RUN-12" // 412 that names the target ID
	RowTooMany  = "DEC-41" // 400 `too many messages`
	RowCut      = "DEC-09" // the request was cut by us, or its client was closed before it began
)

// Reading is an answer, or the lack of one, as every request reads it.
type Reading struct {
	Row         string // of wire.Answers, or one of the constants above
	Status      int    // 0 without an answer
	Text        string // the JSON `error` of a Narad-shaped refusal; matched, never shown
	Edge        bool   // something that is not Narad answered: class edge
	UploadBegan bool   // the request may have landed
	UploadCut   bool   // the target cut the upload short, or its time was over during or after the upload (SND-05, DEC-14)
}

// Read reads an answer or an outbound failure. With RowNone it is the caller's to read on: a 2xx, or a Narad-shaped 400, 409,
// 412, 413, 415 or other 4xx. 401, 403, 413 and 429 act by their status whatever their shape; any other refusal that is not
// shaped like Narad's came from something in front (DEC-02).
func Read(a *outbound.Answer, err error) Reading {
	if err != nil {
		return readFailure(err)
	}
	if a == nil {
		return Reading{Row: "ANS-19", Edge: true, UploadBegan: true}
	}
	r := Reading{Status: a.Status, UploadBegan: true, UploadCut: a.Early}
	switch s := a.Status; {
	case s >= 300 && s < 400:
		r.Row = "ANS-13"
	case s == 401:
		r.Row = "ANS-08"
	case s == 403:
		r.Row = "ANS-09"
	case s == 404:
		r.Row = read404(a)
	case s == 408:
		r.Row = "ANS-15"
	case s == 429:
		r.Row = "ANS-14"
	case s >= 500 && s < 600:
		r.Row = "ANS-16"
	case s >= 200 && s < 300:
		return r
	case s == 413, s >= 400 && s < 500:
		text, shaped := ErrorText(a)
		r.Text = text
		if s != 413 && !shaped {
			r.Row = "ANS-19"
		}
	default:
		r.Row = "ANS-19"
	}
	r.Edge = r.Row == "ANS-19"
	return r
}

func read404(a *outbound.Answer) string {
	if _, shaped := ErrorText(a); shaped {
		return "ANS-10"
	}
	if string(a.Body) == "404 page not found\n" && mediaType(a) != "text/html" {
		return RowBare404
	}
	return "ANS-19"
}

// readFailure maps the outbound client's classes (DEC-05). An error of another kind counts as a cut connection after the
// upload, which loses nothing.
func readFailure(err error) Reading {
	var f *outbound.Failure
	if !errors.As(err, &f) {
		return Reading{Row: "ANS-18", UploadBegan: true}
	}
	r := Reading{UploadBegan: f.UploadBegan, UploadCut: f.UploadCut || f.TimedOut && f.UploadBegan}
	switch f.Class {
	case outbound.Refused:
		r.Row = "ANS-20"
	case outbound.TLS:
		r.Row = "ANS-21"
	case outbound.Timeout:
		r.Row, r.UploadCut = "ANS-17", f.UploadBegan
	case outbound.Malformed:
		r.Row, r.Edge = "ANS-19", true
	case outbound.Canceled:
		r.Row, r.UploadCut = RowCut, false
	default:
		r.Row = "ANS-18"
	}
	return r
}

// ErrorText returns the text of a Narad-shaped refusal: a JSON object with a string `error` that is not empty.
func ErrorText(a *outbound.Answer) (text string, ok bool) {
	var body struct {
		Error *string `json:"error"`
	}
	if !DecodeJSON(a, &body) || body.Error == nil || *body.Error == "" {
		return "", false
	}
	return *body.Error, true
}

// DecodeJSON decodes the whole body of an answer and tells whether it is JSON of that shape. A body that was longer than what is
// read, or that names another content type than JSON, is not (DEC-01).
func DecodeJSON(a *outbound.Answer, into any) bool {
	if a.Truncated {
		return false
	}
	if t := mediaType(a); t != "" && t != "application/json" {
		return false
	}
	return json.Unmarshal(a.Body, into) == nil
}

func mediaType(a *outbound.Answer) string {
	header := a.Header.Get("Content-Type")
	if header == "" {
		return ""
	}
	t, _, err := mime.ParseMediaType(header)
	if err != nil {
		return "unreadable"
	}
	return strings.ToLower(t)
}

// EdgeClass is the check class, and the label of narad_remote_errors_total, of an answer that something in front gave.
const EdgeClass = "edge"

// StateOf returns the link state of a row of wire.Answers or of the rows above; unknown for anything else.
func StateOf(row string) wire.LinkState {
	switch row {
	case RowReplaced:
		return wire.TargetReplaced
	case RowLoop:
		return wire.TargetHasRemoteChildren
	case RowTooMany:
		return wire.Running
	case RowBare404:
		return wire.TargetUnavailable
	}
	for i := range wire.Answers {
		if wire.Answers[i].ID == row {
			return wire.Answers[i].State
		}
	}
	return wire.UnknownState
}
