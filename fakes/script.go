package fakes

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"narad.example/harness/ledger"
)

// Script is what a fake target holds and how it answers. The steps stand in order; a request takes the first step that
// matches it and is not used up. After the last step, and for every request that no step matches, the fake's store answers,
// which behaves like a Narad.
type Script struct {
	Topics []ScriptTopic `json:"topics"`
	Steps  []Step        `json:"steps,omitempty"`
}

// ScriptTopic is one topic of the fake's store.
type ScriptTopic struct {
	Name       string        `json:"name"`
	ID         string        `json:"id,omitempty"`         // 16 hex; empty makes one
	Partitions int           `json:"partitions,omitempty"` // 0 is 3
	Children   []ScriptChild `json:"children,omitempty"`
}

// ScriptChild is one entry of the topic's children listing; with Remote it is a remote child.
type ScriptChild struct {
	Name   string `json:"name"`
	Remote string `json:"remote,omitempty"`
}

// Always is the Times of a step that is never used up.
const Always = -1

// Step is one step of a script.
type Step struct {
	Name   string `json:"name,omitempty"` // default: its place and its answer
	When   When   `json:"when"`
	Answer Reply  `json:"answer"`
	Times  int    `json:"times,omitempty"` // 0 is once; Always
}

// When says which requests a step matches; an empty member matches all.
type When struct {
	Route      string `json:"route,omitempty"`      // one of Routes
	Nth        int    `json:"nth,omitempty"`        // not before the nth request that the other members match, from 1
	Topic      string `json:"topic,omitempty"`      // by name
	Credential string `json:"credential,omitempty"` // a user name, or "none" for a request without credentials
	Record     string `json:"record,omitempty"`     // a record's ID or key, or words in its payload
}

// Reply is the answer of a step: a name of the catalogue with its parameters.
type Reply struct {
	Name       string            `json:"name"`
	Status     int               `json:"status,omitempty"`      // 302, 422, 502, 200
	RetryAfter string            `json:"retry_after,omitempty"` // as it stands in the header; "date+30s" is an HTTP date 30 s ahead
	Index      *int              `json:"index,omitempty"`       // 400-index: N; absent is the matched record's place
	DelayMS    int64             `json:"delay_ms,omitempty"`    // before the answer; for hang its length, 0 until the caller goes
	Bytes      int               `json:"bytes,omitempty"`       // before the cut, of the body that is cut; huge: its size; 413: what is let through
	Headers    map[string]string `json:"headers,omitempty"`     // set last
}

// Routes are the routes that a step can name.
var Routes = []string{"produce", "topic", "children", "consume", "users", "other", "any"}

// Check reports the first thing that is wrong in the script.
func (s *Script) Check() error {
	names := map[string]bool{}
	for _, t := range s.Topics {
		if t.Name == "" || names[t.Name] {
			return fmt.Errorf("script: topic %q has no name or one that is taken", t.Name)
		}
		names[t.Name] = true
	}
	for i := range s.Steps {
		if err := s.Steps[i].check(); err != nil {
			return fmt.Errorf("script step %d: %w", i+1, err)
		}
	}
	return nil
}

func (st *Step) check() error {
	if st.When.Route != "" && !slices.Contains(Routes, st.When.Route) {
		return fmt.Errorf("route %q is none of %s", st.When.Route, strings.Join(Routes, ", "))
	}
	if st.Times < Always || st.When.Nth < 0 || st.Answer.DelayMS < 0 || st.Answer.Bytes < 0 {
		return fmt.Errorf("times, nth, delay and bytes are not negative")
	}
	e, ok := Find(st.Answer.Name)
	if !ok {
		return fmt.Errorf("answer %q stands in no row of the catalogue", st.Answer.Name)
	}
	if e.early && st.When.Record != "" {
		return fmt.Errorf("%s cuts the upload before any record can be read", e.Name)
	}
	for name, given := range map[string]bool{
		"status": st.Answer.Status != 0, "retry_after": st.Answer.RetryAfter != "", "index": st.Answer.Index != nil,
		"bytes": st.Answer.Bytes != 0,
	} {
		if given && !slices.Contains(e.Takes, name) {
			return fmt.Errorf("%s does not take %s", e.Name, name)
		}
	}
	if st.Answer.Status != 0 && (st.Answer.Status < e.low || st.Answer.Status > e.high) {
		return fmt.Errorf("%s takes a status from %d to %d", e.Name, e.low, e.high)
	}
	return nil
}

// play is a script in use.
type play struct {
	mu    sync.Mutex // guards steps
	steps []running
}

type running struct {
	Step
	entry Entry
	seen  int // requests that When matches, Nth aside
	used  int
}

func newPlay(s Script) *play {
	p := &play{}
	for i, st := range s.Steps {
		if st.Name == "" {
			st.Name = fmt.Sprintf("%d %s", i+1, st.Answer.Name)
		}
		if st.Times == 0 {
			st.Times = 1
		}
		e, _ := Find(st.Answer.Name) // Check found it
		p.steps = append(p.steps, running{Step: st, entry: e})
	}
	return p
}

// early returns the step that answers r before its body is read, nil when the body comes first.
func (p *play) early(r *http.Request) *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.steps {
		st := &p.steps[i]
		if st.over() || !st.When.request(r) || st.seen+1 < st.When.Nth {
			continue
		}
		if !st.entry.early {
			return nil
		}
		return p.take(i, r, nil, nil)
	}
	return nil
}

// pick returns the step that answers r, nil for the store, and the place of the record that it matched (-1 none).
func (p *play) pick(r *http.Request, body []byte, records []record) (*running, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.steps {
		st := &p.steps[i]
		place, ok := st.match(r, body, records)
		if !ok || st.over() || st.seen+1 < st.When.Nth {
			continue
		}
		return p.take(i, r, body, records), place
	}
	p.take(-1, r, body, records)
	return nil, -1
}

// take counts the request at every step that it matches and uses step i. Callers hold mu.
func (p *play) take(i int, r *http.Request, body []byte, records []record) *running {
	for j := range p.steps {
		if _, ok := p.steps[j].match(r, body, records); ok || j == i {
			p.steps[j].seen++
		}
	}
	if i < 0 {
		return nil
	}
	p.steps[i].used++
	used := p.steps[i]
	return &used
}

// match is When's, for the requests that the answer itself is for.
func (st *running) match(r *http.Request, body []byte, records []record) (int, bool) {
	place, ok := st.When.match(r, records)
	if st.entry.over && st.Answer.Bytes > 0 && len(body) <= st.Answer.Bytes {
		return place, false
	}
	if !ok || st.entry.only == nil {
		return place, ok
	}
	if place >= 0 {
		_, ok = st.entry.only(r, body, records[place:place+1])
		return place, ok
	}
	return st.entry.only(r, body, records)
}

func (st *running) over() bool { return st.Times != Always && st.used >= st.Times }

// uses is the report of every step: a step that was used less than it wants makes a run inconclusive.
func (p *play) uses() []ledger.Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []ledger.Step{}
	for i := range p.steps {
		st := &p.steps[i]
		out = append(out, ledger.Step{Name: st.Name, Want: max(st.Times, 0), Used: st.used})
	}
	return out
}

// request matches all but the record.
func (w *When) request(r *http.Request) bool {
	topic, _ := topicOf(r)
	user, _, has := r.BasicAuth()
	switch {
	case w.Route != "" && w.Route != "any" && w.Route != routeOf(r), w.Topic != "" && w.Topic != topic:
		return false
	case w.Credential == "none":
		return !has
	case w.Credential != "":
		return has && user == w.Credential
	}
	return true
}

// match matches r with its records and returns the place of the record that Record names, -1 when it names none.
func (w *When) match(r *http.Request, records []record) (int, bool) {
	if !w.request(r) {
		return -1, false
	}
	if w.Record == "" {
		return -1, true
	}
	for i, rec := range records {
		if string(rec.Key) == w.Record || ledger.IDOf(rec.Key, rec.Payload) == w.Record || strings.Contains(string(rec.Payload), w.Record) {
			return i, true
		}
	}
	return -1, false
}

// routeOf is the route's name in scripts.
func routeOf(r *http.Request) string {
	topic, route := topicOf(r)
	switch {
	case batchTopic(r) != "":
		return "produce"
	case r.Method != http.MethodGet:
		return "other"
	case r.URL.Path == "/v1/users":
		return "users"
	case topic != "" && route == "":
		return "topic"
	case topic != "" && (route == "children" || route == "consume"):
		return route
	}
	return "other"
}
