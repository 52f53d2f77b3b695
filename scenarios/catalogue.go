package scenarios

import (
	"fmt"
	"maps"
	"slices"
)

// Answers are the names of the fakes' catalogue with the parameters that each takes beside delay and headers. The language stands
// alone, so they are listed here too; a test of harness/run holds the two lists together.
var Answers = map[string][]string{
	"202": nil, "400-index": {"index"}, "400": nil, "422": {"status"}, "409": nil, "412": nil, "413": {"bytes"}, "401": nil, "403": nil, "narad-404": nil,
	"bare-404": nil, "302": {"status"}, "429": {"retry_after"}, "408": nil, "500": nil, "502": {"status", "retry_after"}, "503": {"retry_after"},
	"stored-then-503": nil, "hang": nil, "stored-then-hang": nil, "early-close": nil, "reset": nil, "truncated": {"bytes"}, "head-only": nil, "cut-upload": {"bytes"},
	"stored-then-cut": nil, "html": {"status"}, "empty": {"status"}, "200": {"status"}, "wrong-count": nil, "wrong-type": nil, "huge": {"bytes", "status"},
	"wrong-request-id": nil, "429-twice": {"retry_after"}, "interim": nil, "http-1.0": nil, "endless-interim": nil, "101": nil, "not-http": nil,
	"endless-body": nil, "endless-header": nil, "415": nil, "invalid-json": nil, "elsewhere": {"status"}, "unasked": nil, "echo": {"status"},
	"400-raw": nil, "415-zstd": nil, "no-zstd": nil, "over-100": nil, "old-listing": nil, "recreated-listing": nil, "chained-listing": nil,
	"delay-topic": nil,
}

func (c *checker) fakeStep(i int, s *FakeStep) {
	path := fmt.Sprintf("target.fake.steps[%d]", i)
	if !c.among(path+".answer", "answer", s.Answer, slices.Sorted(maps.Keys(Answers))) {
		return
	}
	switch {
	case s.Always && c.given(path+".times"):
		c.say(path, "times and always: one of them says how often it answers")
	case !s.Always && s.Times < 1:
		c.say(path+".times", "wants 1 at least")
	}
	takes := append([]string{"delay", "headers"}, Answers[s.Answer]...)
	for _, name := range []string{"status", "retry_after", "index", "bytes"} {
		if c.given(path+".with."+name) && !slices.Contains(takes, name) {
			c.say(path+".with."+name, "%s does not take it; %s", s.Answer, allowed(takes))
		}
	}
	if c.given(path+".with.status") && (s.With.Status < 200 || s.With.Status > 599) {
		c.say(path+".with.status", "wants a status, 200 to 599")
	}
}
