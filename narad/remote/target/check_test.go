package target

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// both answers the listing and the topic apart and counts the requests.
type both struct {
	listing, topic *outbound.Answer
	asked          []string
}

func (b *both) Do(_ context.Context, r *outbound.Request) (*outbound.Answer, error) {
	b.asked = append(b.asked, r.Method+" "+r.Path)
	if strings.HasSuffix(r.Path, "/children") {
		return b.listing, nil
	}
	return b.topic, nil
}

// covers: RUN-03, RUN-04, RUN-09
func TestWhatACheckFinds(t *testing.T) {
	listing := func(id, children string) *outbound.Answer {
		return ours(200, `{"parent":"t",`+id+`"children":[`+children+`]}`)
	}
	const known, old = `"parent_id":"aa",`, ``
	local, remote := `{"name":"x"}`, `{"name":"y","remote":"eu","state":"paused"}`
	none := ours(404, `{"error":"topic not found"}`)
	for name, c := range map[string]struct {
		both     both
		recorded string
		row      string
		class    string // of the error
		requests int
	}{
		"the recorded one":             {both{listing: listing(known, "")}, "aa", RowNone, "", 1},
		"local children alone":         {both{listing: listing(known, local+","+local)}, "aa", RowNone, "", 1},
		"a remote child among others":  {both{listing: listing(known, local+","+remote+","+local)}, "aa", RowLoop, "", 1},
		"a loop on a replaced topic":   {both{listing: listing(known, remote)}, "bb", RowLoop, "", 1},
		"another one":                  {both{listing: listing(known, "")}, "bb", RowReplaced, "", 1},
		"an ID where none was":         {both{listing: listing(known, "")}, "", RowReplaced, "", 1},
		"an older release, the same":   {both{listing: listing(old, local), topic: ours(200, `{"name":"t","id":"aa"}`)}, "aa", RowNone, "", 2},
		"an older release, another":    {both{listing: listing(old, ""), topic: ours(200, `{"name":"t","id":"bb"}`)}, "aa", RowReplaced, "", 2},
		"an ID after an upgrade":       {both{listing: listing(old, ""), topic: ours(200, `{"name":"t","id":"bb"}`)}, "", RowReplaced, "", 2},
		"no IDs at all":                {both{listing: listing(old, ""), topic: ours(200, `{"name":"t"}`)}, "", RowNone, "", 2},
		"the ID went away":             {both{listing: listing(old, ""), topic: ours(200, `{"name":"t"}`)}, "aa", RowReplaced, "", 2},
		"gone between the two":         {both{listing: listing(old, ""), topic: none}, "aa", "", "target_missing", 2},
		"the topic does not answer":    {both{listing: listing(old, ""), topic: ours(503, `{}`)}, "aa", "", "unavailable", 2},
		"gone":                         {both{listing: none}, "aa", "", "target_missing", 1},
		"not allowed":                  {both{listing: ours(403, `{}`)}, "aa", "", "forbidden", 1},
		"something in front":           {both{listing: says(200, "text/html", "<html>")}, "aa", "", EdgeClass, 1},
		"a listing without children":   {both{listing: ours(200, `{"parent":"t","parent_id":"aa"}`)}, "aa", "", EdgeClass, 1},
		"a page that is cut at 64 KiB": {both{listing: &outbound.Answer{Status: 200, Header: http.Header{}, Body: []byte(`{"parent":"t","parent_id":"aa","children":[]}`), Truncated: true}}, "aa", "", EdgeClass, 1},
	} {
		t.Run(name, func(t *testing.T) {
			row, err := Check(t.Context(), &c.both, "t", c.recorded)
			require.Equal(t, c.row, row)
			require.Equal(t, []string{"GET /v1/topics/t/children", "GET /v1/topics/t"}[:c.requests], c.both.asked)
			if c.class == "" {
				require.NoError(t, err)
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.class, e.Class)
			if c.class == "target_missing" {
				require.Equal(t, wire.TargetMissing, e.State)
				require.Equal(t, 404, e.Status)
			}
		})
	}
}
