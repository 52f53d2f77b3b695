package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Streams of a toxic: upstream is what the source sends, downstream what it receives.
const (
	Upstream   = "upstream"
	Downstream = "downstream"
)

// Toxic is one toxic of toxiproxy on the link. Attributes are in toxiproxy's own units (Toxics); the constructors below take
// Go's.
type Toxic struct {
	Name       string
	Type       string
	Stream     string  // compulsory: toxiproxy would take downstream without a word
	Toxicity   float64 // 0 and 1 are every connection; anything between is refused, since toxiproxy rolls it without a seed
	Attributes map[string]int64
}

// ToxicType is a row of the table of toxics.
type ToxicType struct {
	Type     string
	Does     string               // on the wire
	Required []string             // attributes that must be there
	Takes    map[string]Attribute // all attributes
}

// Attribute is one attribute of a toxic.
type Attribute struct {
	Unit     string // toxiproxy's own
	Min, Max int64
}

const day = 24 * 60 * 60 * 1000 // milliseconds

// Toxics is every toxic that toxiproxy has. Jitter, size_variation and a toxicity below 1 are left out on purpose: they
// are rolled without our seed.
var Toxics = []ToxicType{
	{"latency", "each chunk of bytes arrives later", []string{"latency"}, map[string]Attribute{"latency": {"ms", 1, day}}},
	{"bandwidth", "bytes arrive at a rate", []string{"rate"}, map[string]Attribute{"rate": {"KB/s", 1, 1 << 20}}},
	{"slow_close", "the end of a connection arrives later", []string{"delay"}, map[string]Attribute{"delay": {"ms", 1, day}}},
	{"timeout", "bytes stop; the connection ends after the time, or never with 0", []string{"timeout"}, map[string]Attribute{"timeout": {"ms", 0, day}}},
	{"reset_peer", "the connection is reset after the time", nil, map[string]Attribute{"timeout": {"ms", 0, day}}},
	{"slicer", "bytes arrive in small pieces with pauses", []string{"average_size"}, map[string]Attribute{
		"average_size": {"bytes", 1, 1 << 30}, "delay": {"us", 0, day},
	}},
	{"limit_data", "the connection ends after so many bytes", []string{"bytes"}, map[string]Attribute{"bytes": {"bytes", 1, 1 << 40}}},
}

// Latency delays a stream.
func Latency(name, stream string, d time.Duration) Toxic {
	return Toxic{Name: name, Type: "latency", Stream: stream, Attributes: map[string]int64{"latency": d.Milliseconds()}}
}

// Bandwidth lets bytesPerSecond through, in steps of 1,024.
func Bandwidth(name, stream string, bytesPerSecond int64) Toxic {
	return Toxic{Name: name, Type: "bandwidth", Stream: stream, Attributes: map[string]int64{"rate": bytesPerSecond >> 10}}
}

// SlowClose delays the end of connections.
func SlowClose(name, stream string, d time.Duration) Toxic {
	return Toxic{Name: name, Type: "slow_close", Stream: stream, Attributes: map[string]int64{"delay": d.Milliseconds()}}
}

// Stall stops all bytes and ends the connection after d, never when d is 0. Removing it ends the connections that it held.
func Stall(name, stream string, d time.Duration) Toxic {
	return Toxic{Name: name, Type: "timeout", Stream: stream, Attributes: map[string]int64{"timeout": d.Milliseconds()}}
}

// ResetPeer resets connections d after their first byte.
func ResetPeer(name, stream string, d time.Duration) Toxic {
	return Toxic{Name: name, Type: "reset_peer", Stream: stream, Attributes: map[string]int64{"timeout": d.Milliseconds()}}
}

// Slicer cuts a stream into pieces of size bytes with a pause after each.
func Slicer(name, stream string, size int64, pause time.Duration) Toxic {
	return Toxic{Name: name, Type: "slicer", Stream: stream, Attributes: map[string]int64{"average_size": size, "delay": pause.Microseconds()}}
}

// LimitData ends connections after n bytes.
func LimitData(name, stream string, n int64) Toxic {
	return Toxic{Name: name, Type: "limit_data", Stream: stream, Attributes: map[string]int64{"bytes": n}}
}

// Check reports the first thing that is wrong with t.
func (t *Toxic) Check() error {
	i := slices.IndexFunc(Toxics, func(row ToxicType) bool { return row.Type == t.Type })
	switch {
	case t.Name == "" || strings.ContainsAny(t.Name, "/ ?#"):
		return fmt.Errorf("toxic %q: a name without slashes and spaces is needed", t.Name)
	case i < 0:
		return fmt.Errorf("toxic %s: type %q is none of toxiproxy's", t.Name, t.Type)
	case t.Stream != Upstream && t.Stream != Downstream:
		return fmt.Errorf("toxic %s: stream must be %s or %s", t.Name, Upstream, Downstream)
	case t.Toxicity != 0 && t.Toxicity != 1:
		return fmt.Errorf("toxic %s: a toxicity between 0 and 1 cannot be replayed; flap the whole toxic instead", t.Name)
	}
	row := Toxics[i]
	for _, need := range row.Required {
		if _, ok := t.Attributes[need]; !ok {
			return fmt.Errorf("toxic %s: %s needs %s", t.Name, t.Type, need)
		}
	}
	for name, v := range t.Attributes {
		a, ok := row.Takes[name]
		if !ok {
			return fmt.Errorf("toxic %s: %s takes %s, not %s", t.Name, t.Type, strings.Join(slices.Sorted(maps.Keys(row.Takes)), ", "), name)
		}
		if v < a.Min || v > a.Max {
			return fmt.Errorf("toxic %s: %s is %d to %d %s", t.Name, name, a.Min, a.Max, a.Unit)
		}
	}
	return nil
}
