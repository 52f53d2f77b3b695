package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/client"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

// test asks the source to check the target as an attach would.
func (p *play) test(ctx context.Context, source cluster.Node, l scenarios.Link, st scenarios.Step) {
	var t wire.RemoteTest
	a := p.admin(ctx, source, request{
		ok: http.StatusOK, action: "remote.test", target: l.Remote, expect: st.Expect, answer: &t,
		do: func(ctx context.Context, c *client.Client) (err error) {
			t, err = c.Remotes().Test(ctx, l.Remote, wire.TestRemote{Topic: cmp.Or(st.Topic, l.Topic), Source: l.Parent})
			return err
		},
	})
	if a.Status == http.StatusOK {
		p.answered(l.Child, st, map[string]string{"result": t.Result, "class": cmp.Or(t.Class, "none")})
	}
}

// reencrypt moves every password to the current key, and looks at what became of one.
func (p *play) reencrypt(ctx context.Context, source cluster.Node, st scenarios.Step) {
	var done wire.Reencrypted
	a := p.admin(ctx, source, request{
		ok: http.StatusOK, action: "remote.reencrypt", expect: st.Expect, answer: &done, changed: func() []string { return done.Reencrypted },
		do: func(ctx context.Context, c *client.Client) (err error) {
			done, err = c.Remotes().Reencrypt(ctx)
			return err
		},
	})
	if a.Status != http.StatusOK {
		return
	}
	password := ""
	switch i := slices.IndexFunc(done.Failed, func(f wire.ReencryptError) bool { return f.Name == st.Remote }); {
	case i >= 0:
		password = done.Failed[i].Reason
	case slices.Contains(done.Reencrypted, st.Remote):
		password = scenarios.Resealed
	case slices.Contains(done.AlreadyCurrent, st.Remote):
		password = scenarios.AlreadyCurrent
	}
	p.answered(st.Remote, st, map[string]string{"password": password})
}

// answered writes down what an answer said of what the step wants to see; a judge compares.
func (p *play) answered(of string, st scenarios.Step, got map[string]string) {
	for _, member := range slices.Sorted(maps.Keys(st.Shows)) {
		one := ledger.Look{At: p.now(), Step: fmt.Sprintf("%s at %s", st.Action, st.At), Child: of, Member: member, Want: st.Shows[member], Got: got[member]}
		p.change(func(f *ledger.Facts) { f.Looks = append(f.Looks, one) })
	}
}

// answerText is a good answer as the ledger keeps it: the judge of secrets looks in it, and the judge of audit lines.
func answerText(answer any) string {
	text, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
