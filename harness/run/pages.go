package run

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

// mostPages bounds the listings that are kept.
const mostPages = 500

// keepListing keeps a children listing as it was answered whenever a link in it shows another state than before, so that the judge of
// secrets looks where words of a target would be shown (LST-05, LOG-01).
func (p *play) keepListing(parent string, c wire.Children) {
	states := ""
	for _, e := range c.Children {
		if e.RemoteEntry != nil {
			states += e.Name + "=" + string(e.State) + " "
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown[parent] == states || len(p.pages) >= mostPages {
		return
	}
	p.shown[parent] = states
	if page, err := json.Marshal(c); err == nil {
		p.pages = append(p.pages, page)
	}
}

// gatherPages writes the kept listings and the present metrics page of every node into the folder.
func (p *play) gatherPages(ctx context.Context) {
	p.mu.Lock()
	pages := p.pages
	p.mu.Unlock()
	if err := ledger.Write(p.path(filepath.Join(ledger.NodesName, "listings.jsonl")), pages); err != nil {
		p.trouble("%v", err)
	}
	for _, n := range p.nodes() {
		page, err := n.Metrics(ctx)
		if err == nil {
			err = os.WriteFile(p.path(filepath.Join(ledger.NodesName, n.Name()+".metrics")), []byte(page), 0o644)
		}
		if err != nil {
			p.trouble("metrics of %s: %s", n.Name(), firstWords(err.Error()))
		}
	}
}
