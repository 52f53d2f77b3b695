package link

import (
	"context"
	"log/slog"
	"slices"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// unshippedReport is one check of a parent: what the members answered first, then what the owners answered for each link by its
// attach epoch.
type unshippedReport struct {
	backlog BacklogReport
	lags    map[string]LagReport
}

// readUnshipped reads every member's backlog first and every owner's lag after it. A record leaves a backlog only once it is
// committed to the parent, and then the lag counts it; in the other order it could fall between the two (UNS-01). It goes on without
// the caller that set it off, because others may wait for it.
func (s *seat) readUnshipped(ctx context.Context, parent meta.Topic) unshippedReport {
	ctx = context.WithoutCancel(ctx)
	r := unshippedReport{lags: map[string]LagReport{}}
	first, cancel := context.WithTimeout(ctx, backlogTime)
	r.backlog = s.o.Backlog.Backlog(first, parent)
	cancel()
	then, cancel := context.WithTimeout(ctx, lagTime)
	defer cancel()
	for _, l := range stubs(s.o.State.Children(parent.Name)) {
		r.lags[l.AttachEpoch] = s.o.Lag.Lag(then, l)
	}
	return r
}

// of folds the report for some links of the parent. clean says that nothing at all is unshipped, and that everyone said so (UNS-02).
func (r unshippedReport) of(links []meta.Topic) (u wire.Unshipped, clean bool) {
	u = wire.Unshipped{LagComplete: true, DispatchBacklog: map[string]int64{}}
	silent := slices.Clone(r.backlog.NotAnswering)
	for _, l := range links {
		lag, known := r.lags[l.AttachEpoch] // an attach after the check began is not in it
		u.LagMessages += lag.Messages
		u.LagComplete = u.LagComplete && known && lag.Complete
		silent = append(silent, lag.NotAnswering...)
	}
	for node, n := range r.backlog.Nodes {
		if n > 0 {
			u.DispatchBacklog[node] = n
		}
	}
	slices.Sort(silent)
	u.NotAnswering = slices.Compact(silent)
	u.BacklogOverScanLimit = slices.Sorted(slices.Values(r.backlog.OverLimit))
	clean = u.LagMessages == 0 && u.LagComplete && len(u.DispatchBacklog) == 0 && len(u.NotAnswering) == 0 && len(u.BacklogOverScanLimit) == 0
	return u, clean
}

// mayAbandon refuses while something of the links is unshipped. With force it goes on, notes in the write how much is abandoned, and returns
// what the audit line tells of that (WRT-11).
func (s *seat) mayAbandon(ctx context.Context, w *write, parent meta.Topic, links []meta.Topic) ([]slog.Attr, error) {
	report, err := s.gate.check(ctx, parent.ID, w.Force, func() unshippedReport { return s.readUnshipped(ctx, parent) })
	if err != nil {
		return nil, err
	}
	u, clean := report.of(links)
	if w.Force {
		backlog := int64(0)
		for _, n := range u.DispatchBacklog {
			backlog += n
		}
		w.abandoned = &meta.Abandoned{LagMessages: u.LagMessages, DispatchBacklog: backlog}
		return told(w.abandoned), nil
	}
	if clean {
		return nil, nil
	}
	p := wire.Refuse(wire.Conflict, "records of the parent are not shipped yet; wait, or use force to abandon them").
		With("lag_messages", u.LagMessages).With("lag_complete", u.LagComplete).With("dispatch_backlog", u.DispatchBacklog)
	if len(u.NotAnswering) > 0 {
		p = p.With("not_answering", u.NotAnswering)
	}
	if len(u.BacklogOverScanLimit) > 0 {
		p = p.With("backlog_over_scan_limit", u.BacklogOverScanLimit)
	}
	return nil, p
}
