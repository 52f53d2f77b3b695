package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

// look writes down what a link's listing and the source's metrics show now, member by member; a judge compares.
func (p *play) look(ctx context.Context, l scenarios.Link, st scenarios.Step) {
	_, listing, ok := p.listing(ctx, l.Parent, true)
	i := slices.IndexFunc(listing.Children, func(c wire.ChildEntry) bool { return c.Name == l.Child && c.RemoteEntry != nil })
	var shown map[string]string
	if ok && i >= 0 {
		shown = entryWords(listing.Children[i], time.Now())
	}
	var samples []ledger.Sample
	for _, s := range p.lookAtNodes(ctx) {
		if strings.HasPrefix(s.Node, "source-") && !s.Silent {
			samples = append(samples, s)
		}
	}
	for _, member := range slices.Sorted(maps.Keys(st.Shows)) {
		one := ledger.Look{At: p.now(), Step: fmt.Sprintf("look at %s", st.At), Child: l.Child, Member: member, Want: st.Shows[member]}
		if _, ours := scenarios.Shown[member]; ours {
			one.Got = shown[member]
		} else if len(samples) > 0 {
			one.Got = sumOf(samples, member)
		}
		p.change(func(f *ledger.Facts) { f.Looks = append(f.Looks, one) })
	}
}

// sumOf sums a metric over nodes and series. A metric without a series is 0.
func sumOf(samples []ledger.Sample, name string) string {
	var sum float64
	for _, s := range samples {
		for series, v := range s.Metrics {
			if of, _, _ := strings.Cut(series, "{"); of == name {
				sum += v
			}
		}
	}
	return number(sum)
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// entryWords are the members of scenarios.Shown that an entry has. One that it has not is absent, and no comparison holds for it.
func entryWords(c wire.ChildEntry, now time.Time) map[string]string {
	out := map[string]string{
		"state": string(c.State), "blocked": "none", "paused": strconv.FormatBool(c.Paused), "unverified": strconv.FormatBool(c.Unverified),
		"lag_complete": strconv.FormatBool(c.LagComplete), "lag_messages": number(float64(c.LagMessages)), "lag_seconds": number(c.LagSeconds),
		"partitions": number(float64(len(c.Partitions))),
	}
	if b := c.BlockedAt; b != nil {
		out["blocked"] = string(b.State)
	}
	if h := c.RetentionHeadroomSeconds; h != nil {
		out["retention_headroom_seconds"] = number(*h)
	}
	for member, at := range map[string]*string{"verified_seconds_ago": c.TargetVerifiedAt, "success_seconds_ago": c.LastSuccessAt} {
		if at == nil {
			continue
		}
		if t, err := time.Parse(time.RFC3339, *at); err == nil {
			out[member] = number(now.Sub(t).Seconds())
		}
	}
	var next int64
	for _, part := range c.Partitions {
		if part.NextOffset == nil {
			return out
		}
		next += *part.NextOffset
	}
	out["next_offset"] = number(float64(next))
	return out
}
