package invariant

import "narad.example/harness/ledger"

// count takes the totals that need no judgement.
func count(s *ledger.Scenario) ledger.Counts {
	var c ledger.Counts
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Kind != ledger.KindProduce {
			continue
		}
		switch o.Outcome {
		case ledger.Acknowledged:
			c.Acknowledged++
		case ledger.Refused:
			c.Refused++
		default:
			c.Unknown++
		}
	}
	seen := map[string]bool{}
	for _, r := range accepted(s) {
		for _, rec := range r.Records {
			c.OnWire++
			if key := r.Topic + " " + rec.ID; seen[key] {
				c.Duplicates++
			} else {
				seen[key] = true
			}
		}
	}
	c.OnTarget = int64(len(s.Target))
	resent, _ := counter(s, "narad_remote_resent_records_total", "", "")
	c.Resent = int64(resent)
	for _, l := range s.Facts.Links {
		for _, offsets := range l.Skip {
			c.Skipped += int64(len(offsets))
		}
	}
	for _, d := range s.Facts.Drops {
		c.Dropped += d.To - d.From + 1
	}
	return c
}
