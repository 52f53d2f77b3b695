package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"narad.example/narad/wire"
)

// LogLines counts lines of the nodes' logs (LOG-01 to LOG-06).
type LogLines struct {
	Message string            `yaml:"message"` // as it stands in the line, whole
	Level   string            `yaml:"level,omitempty" enum:"error,warn,info,debug"`
	On      string            `yaml:"on,omitempty"`   // a node; absent is every node
	With    map[string]string `yaml:"with,omitempty"` // members of the line, such as state: throttled; * is any value
	From    Duration          `yaml:"from,omitempty"` // of the load's time, as until
	Until   Duration          `yaml:"until,omitempty"`
	Is      string            `yaml:"is"` // a comparison
}

// Asked counts requests that the tap or the fake saw.
type Asked struct {
	Route   string   `yaml:"route" enum:"chunk,probe,children,topic,users,any"` // chunk has records, probe is a batch produce with none that counts
	Status  int      `yaml:"status,omitempty"`
	Outcome string   `yaml:"outcome,omitempty" enum:"accepted,refused,answered,cut,hung"`
	Answer  string   `yaml:"answer,omitempty" enum:"whole,part"` // whether all of it went out, as far as the tap can tell
	Topic   string   `yaml:"topic,omitempty"`
	Records string   `yaml:"records,omitempty"` // a comparison with how many records it has
	Bytes   string   `yaml:"bytes,omitempty"`   // a comparison with the bytes of its body, as sent
	From    Duration `yaml:"from,omitempty"`    // of the load's time, as until
	Until   Duration `yaml:"until,omitempty"`
	Is      string   `yaml:"is"` // a comparison
}

// Produced counts records of the load by the answer to their produce.
type Produced struct {
	Status int      `yaml:"status"`
	On     string   `yaml:"on,omitempty"`   // a node of the source that was asked; absent is every node
	From   Duration `yaml:"from,omitempty"` // of the load's time, as until
	Until  Duration `yaml:"until,omitempty"`
	Is     string   `yaml:"is"` // a comparison
}

// Shown are the members of the children listing that a look can ask for. A number is compared, a word stands for itself; metrics by
// their name beside them are summed over the source's nodes at that moment.
var Shown = map[string]string{
	"state": "words", "blocked": "words", "paused": "words", "unverified": "words", "lag_complete": "words",
	"lag_messages": "number", "lag_seconds": "number", "retention_headroom_seconds": "number", "verified_seconds_ago": "number",
	"success_seconds_ago": "number", "next_offset": "number", "partitions": "number",
}

// answers are the members of the answers that a step can ask for, with the words that each may be; class is any check class of
// api.md, or none.
var answers = map[string]map[string][]string{
	"test":      {"result": {wire.CheckPass, wire.CheckFail}, "class": {}},
	"reencrypt": {"password": {Resealed, AlreadyCurrent, wire.KeyUnknown, wire.OpenFailed}},
}

// What a reencrypt did to a remote's password, beside the reasons of a failure.
const (
	Resealed       = "reencrypted"
	AlreadyCurrent = "already_current"
)

func (c *checker) answered(s *Step, path string) {
	members := answers[s.Action]
	for _, member := range slices.Sorted(maps.Keys(s.Shows)) {
		at := path + ".shows." + member
		words, known := members[member]
		if !known {
			c.say(at, "is no member of the answer to %s; %s", s.Action, allowed(slices.Sorted(maps.Keys(members))))
			continue
		}
		for word := range strings.SplitSeq(s.Shows[member], " or ") {
			if len(words) > 0 && !slices.Contains(words, word) {
				c.say(at, "%q is none; %s; several are joined by the word or", word, allowed(words))
			}
		}
	}
}

func (c *checker) looks(s *Step, path string) {
	if len(s.Shows) == 0 {
		c.say(path+".shows", "is missing: a look says what it wants to see")
	}
	for _, member := range slices.Sorted(maps.Keys(s.Shows)) {
		at, want := path+".shows."+member, s.Shows[member]
		kind, known := Shown[member]
		switch {
		case !known && !metricName.MatchString(member):
			c.say(at, "is no member of the listing and no metric; %s", allowed(slices.Sorted(maps.Keys(Shown))))
		case kind != "words" && !comparison.MatchString(want):
			c.say(at, `%q: wants a comparison such as "> 0" or "== 12"; allowed: >, >=, <, <=, ==`, want)
		case member == "state":
			for word := range strings.SplitSeq(want, " or ") {
				if !slices.Contains(wire.LinkStates, wire.LinkState(word)) {
					c.say(at, "%q is no link state; several are joined by the word or", word)
				}
			}
		}
	}
}

func (c *checker) counted() {
	for i, l := range c.s.Expect.Logs {
		path := fmt.Sprintf("expect.logs[%d]", i)
		if l.Message == "" {
			c.say(path+".message", "is missing: a line is found by its message")
		}
		if l.On != "" {
			c.among(path+".on", "node", l.On, c.nodes)
		}
		c.count(path, l.Is, l.From, l.Until)
	}
	for i, r := range c.s.Expect.Requests {
		path := fmt.Sprintf("expect.requests[%d]", i)
		if r.Route == "" {
			c.say(path+".route", "is missing; allowed: chunk, probe, children, topic, users, any")
		}
		if r.Status != 0 && (r.Status < 100 || r.Status > 599) {
			c.say(path+".status", "wants a status, 100 to 599")
		}
		c.compares(path+".records", r.Records)
		c.compares(path+".bytes", r.Bytes)
		c.count(path, r.Is, r.From, r.Until)
	}
	for i, r := range c.s.Expect.Produces {
		path := fmt.Sprintf("expect.produces[%d]", i)
		if r.Status < 100 || r.Status > 599 {
			c.say(path+".status", "wants a status, 100 to 599")
		}
		if r.On != "" {
			c.among(path+".on", "node", r.On, c.nodes[:c.s.Source.Nodes+c.s.Source.Spares])
		}
		c.count(path, r.Is, r.From, r.Until)
	}
}

// compares says so when what is given is no comparison.
func (c *checker) compares(path, is string) {
	if is != "" && !comparison.MatchString(is) {
		c.say(path, `%q: wants a comparison such as "> 0" or "== 12"; allowed: >, >=, <, <=, ==`, is)
	}
}

func (c *checker) count(path, is string, from, until Duration) {
	if c.compares(path+".is", is); is == "" {
		c.say(path+".is", "is missing: a comparison such as \"> 0\"")
	}
	if until > 0 && until <= from {
		c.say(path+".until", "is not after from")
	}
}
