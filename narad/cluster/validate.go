package cluster

import (
	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// The limits of api.md (Topics, Children).
const (
	MinPartitions = 3
	maxName       = 200
	yearMS        = int64(365 * 24 * 60 * 60 * 1000)
	maxPage       = 1000
)

// Defaults of a new topic (broker.md topic.*). A zero member is the default of api.md.
type Defaults struct {
	Partitions          int   // 3
	MaxPartitions       int   // 108
	RetentionMS         int64 // 7 days; -1 keeps forever
	VisibilityTimeoutMS int64 // 30 s
	MaxInFlight         int   // 1024
	MaxAckedAhead       int   // 1024
}

func (d Defaults) filled() Defaults {
	or := func(v, def int64) int64 {
		if v == 0 {
			return def
		}
		return v
	}
	d.Partitions = int(or(int64(d.Partitions), MinPartitions))
	d.MaxPartitions = int(or(int64(d.MaxPartitions), 108))
	d.RetentionMS = max(0, or(d.RetentionMS, 7*24*meta.HourMS))
	d.VisibilityTimeoutMS = or(d.VisibilityTimeoutMS, 30_000)
	d.MaxInFlight = int(or(int64(d.MaxInFlight), 1024))
	d.MaxAckedAhead = int(or(int64(d.MaxAckedAhead), 1024))
	return d
}

// ValidName tells whether a topic may have this name: 1 to 200 of A-Za-z0-9._-, not "." or "..".
func ValidName(name string) bool {
	if name == "" || len(name) > maxName || name == "." || name == ".." {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func invalid(format string, args ...any) *wire.Problem {
	return wire.Refuse(wire.Invalid, format, args...)
}

func checkRetention(ms int64) *wire.Problem {
	if ms != 0 && ms < meta.HourMS {
		return invalid("retention_ms must be 0, which keeps forever, or at least %d", meta.HourMS)
	}
	return nil
}

func (d Defaults) checkPartitions(n int) *wire.Problem {
	if n < MinPartitions || n > d.MaxPartitions {
		return invalid("partitions must be %d to %d", MinPartitions, d.MaxPartitions)
	}
	return nil
}

func checkDelay(field string, ms int64) *wire.Problem {
	if ms < 0 || ms > yearMS {
		return invalid("%s must be 0 to %d, which is one year", field, yearMS)
	}
	return nil
}

// newTopic turns a create into a record with all defaults, without ID, owner, nodes or attach.
func (d Defaults) newTopic(r wire.CreateTopic, parent *meta.Topic) (meta.Topic, *wire.Problem) {
	t := meta.Topic{
		Name: r.Name, Partitions: r.Partitions, RetentionMS: d.RetentionMS, VisibilityTimeoutMS: r.VisibilityTimeoutMS,
		MaxInFlight: r.MaxInFlightPerPartition, MaxAckedAhead: r.MaxAckedAheadPerPartition,
		Parent: r.Parent, FanoutDelayMS: r.FanoutDelayMS,
	}
	if r.RetentionMS != nil {
		t.RetentionMS = *r.RetentionMS
	}
	switch {
	case t.Partitions == 0 && parent != nil:
		t.Partitions = parent.Partitions
	case t.Partitions == 0:
		t.Partitions = d.Partitions
	}
	if t.VisibilityTimeoutMS == 0 {
		t.VisibilityTimeoutMS = d.VisibilityTimeoutMS
	}
	if t.MaxInFlight == 0 {
		t.MaxInFlight = d.MaxInFlight
	}
	if t.MaxAckedAhead == 0 {
		t.MaxAckedAhead = d.MaxAckedAhead
	}
	return t, d.check(&t)
}

func (d Defaults) check(t *meta.Topic) *wire.Problem {
	if p := d.checkPartitions(t.Partitions); p != nil {
		return p
	}
	if p := checkRetention(t.RetentionMS); p != nil {
		return p
	}
	if p := checkDelay("fanout_delay_ms", t.FanoutDelayMS); p != nil {
		return p
	}
	switch {
	case t.VisibilityTimeoutMS < 1:
		return invalid("visibility_timeout_ms must be positive")
	case t.MaxInFlight < 1:
		return invalid("max_in_flight_per_partition must be positive")
	case t.MaxAckedAhead < 1:
		return invalid("max_acked_ahead_per_partition must be positive")
	case t.FanoutDelayMS > 0 && t.Parent == "":
		return invalid("fanout_delay_ms needs a parent")
	}
	return nil
}

// checkRequest checks what a create must have whatever the state is.
func checkRequest(r wire.CreateTopic) *wire.Problem {
	if !ValidName(r.Name) {
		return invalid("name must be 1 to %d of A-Za-z0-9._- and neither . nor ..", maxName)
	}
	return nil
}

// changes tells whether an entry changes a setting.
func changes(e *meta.AlterTopic) bool {
	return e.RetentionMS != nil || e.MaxInFlight != nil || e.MaxAckedAhead != nil || e.Partitions != nil
}

// alteration turns a PATCH into an entry without nodes. Whether it fits the topic is the caller's and the state's business.
func (d Defaults) alteration(t *meta.Topic, r wire.AlterTopic) (meta.AlterTopic, *wire.Problem) {
	e := meta.AlterTopic{
		Name: t.Name, ID: t.ID, RetentionMS: r.RetentionMS, MaxInFlight: r.MaxInFlightPerPartition,
		MaxAckedAhead: r.MaxAckedAheadPerPartition, Partitions: r.Partitions,
	}
	switch {
	case r.Schema == nil && r.SchemaBaseVersion != nil:
		return e, invalid("schema_base_version needs a schema")
	case r.Schema != nil && r.SchemaBaseVersion == nil:
		return e, invalid("a schema needs schema_base_version, the version that it was made from; 0 is none")
	case r.Schema == nil && !changes(&e):
		return e, invalid("nothing to change")
	case e.MaxInFlight != nil && *e.MaxInFlight < 1:
		return e, invalid("max_in_flight_per_partition must be positive")
	case e.MaxAckedAhead != nil && *e.MaxAckedAhead < 1:
		return e, invalid("max_acked_ahead_per_partition must be positive")
	}
	if e.RetentionMS != nil {
		if p := checkRetention(*e.RetentionMS); p != nil {
			return e, p
		}
	}
	if e.Partitions != nil && !t.IsStub() {
		if *e.Partitions <= t.Partitions {
			return e, invalid("partitions can only grow")
		}
		if p := d.checkPartitions(*e.Partitions); p != nil {
			return e, p
		}
	}
	return e, nil
}
