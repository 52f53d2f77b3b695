package scenarios

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// toxicFields says which attributes a toxic takes; the first ones are required.
var toxicFields = map[string]struct{ need, may []string }{
	"latency":    {need: []string{"latency"}},
	"bandwidth":  {need: []string{"rate"}},
	"slow_close": {need: []string{"delay"}},
	"timeout":    {need: []string{"timeout"}},
	"reset_peer": {may: []string{"timeout"}},
	"slicer":     {need: []string{"average_size", "delay"}}, // pieces without pauses come together again and show nowhere
	"limit_data": {need: []string{"bytes"}},
}

// MarshalYAML writes the form that Load reads: a required attribute stands there although it is 0.
func (t Toxic) MarshalYAML() (any, error) {
	out := yaml.MapSlice{{Key: "type", Value: t.Type}, {Key: "stream", Value: t.Stream}}
	v := reflect.ValueOf(t)
	fields, names := fieldsOf(v.Type())
	for _, name := range names[len(out):] {
		f := v.FieldByIndex(fields[name].Index)
		if !f.IsZero() || slices.Contains(toxicFields[t.Type].need, name) {
			out = append(out, yaml.MapItem{Key: name, Value: f.Interface()})
		}
	}
	return out, nil
}

// Kind is what a fault does: a toxic's type, a disk's fault, cut, kill, stop, start, restart, transfer, rolling, upgrade, mute, pause, clock, tls, dns or config; ""
// when it says nothing.
func (f *Fault) Kind() string {
	switch {
	case f.Toxic != nil:
		return f.Toxic.Type
	case f.Cut:
		return "cut"
	case f.Kill != "":
		return "kill"
	case f.Stop != "":
		return "stop"
	case f.Start != "":
		return "start"
	case f.Restart != "":
		return "restart"
	case f.Transfer != "":
		return "transfer"
	case f.Rolling != "":
		return "rolling"
	case f.Upgrade != "":
		return "upgrade"
	case f.Mute != "":
		return "mute"
	case f.Pause != "":
		return "pause"
	case f.Disk != nil:
		return f.Disk.Fault
	case f.Clock != nil:
		return "clock"
	case f.TLS != "":
		return "tls"
	case len(f.DNS) > 0:
		return "dns"
	case f.Config != nil:
		return "config"
	}
	return ""
}

// Node is the node that a fault is about, perhaps by an alias (Alias); "" for the link, for a side and for a cut between nodes.
func (f *Fault) Node() string {
	for _, n := range []string{f.Kill, f.Stop, f.Start, f.Restart, f.Transfer, f.Upgrade, f.Mute, f.Pause} {
		if n != "" {
			return n
		}
	}
	switch {
	case f.Disk != nil:
		return f.Disk.Node
	case f.Clock != nil:
		return f.Clock.Node
	case f.Config != nil:
		return f.Config.Node
	}
	return ""
}

// Name tells a fault from its like, with its parameters.
func (f *Fault) Name() string {
	on := f.Node()
	switch {
	case on != "":
	case f.Rolling != "":
		on = f.Rolling
	case f.Parts(), f.Paces():
		on = f.parted()
	default:
		on = "source>target"
	}
	return fmt.Sprintf("%s on %s at %s", f.Kind(), on, f.At)
}

// Attributes are a toxic's attributes in toxiproxy's units: milliseconds, bytes, KB/s, and microseconds for a slicer's delay.
func (t *Toxic) Attributes() map[string]int64 {
	out := map[string]int64{}
	put := func(name string, v int64) {
		if v > 0 {
			out[name] = v
		}
	}
	put("latency", t.Latency.D().Milliseconds())
	put("rate", int64(t.Rate)>>10)
	put("timeout", t.Timeout.D().Milliseconds())
	if t.Type == "timeout" {
		out["timeout"] = t.Timeout.D().Milliseconds() // 0 is a stall without an end, and toxiproxy wants it named
	}
	put("average_size", int64(t.AverageSize))
	put("bytes", int64(t.Bytes))
	if t.Type == "slicer" {
		put("delay", t.Delay.D().Microseconds())
	} else {
		put("delay", t.Delay.D().Milliseconds())
	}
	return out
}

func (c *checker) faults() {
	loads := c.loadEnd()
	down := map[string]bool{}
	names := map[string]bool{}
	for i := range c.s.Faults {
		f, path := &c.s.Faults[i], fmt.Sprintf("faults[%d]", i)
		if !c.oneKind(f, path) {
			continue
		}
		if names[f.Name()] {
			c.say(path, "the same fault twice at the same time")
		}
		names[f.Name()] = true
		if loads > 0 && int64(f.At) >= loads {
			c.say(path+".at", "the load ends at %s: a fault after it proves nothing", Duration(loads))
		}
		c.repeats(f, path)
		switch {
		case f.Parts():
			c.parties(f, path)
		case f.Paces():
			c.pace(f, path)
		default:
			c.onLink(f, path)
		}
		c.onNode(f, path, down)
		c.flap(f, path)
	}
}

// loadEnd is when the last load of known length ends, 0 when one ends by the speed of the source.
func (c *checker) loadEnd() int64 {
	var end int64
	for i := range c.s.Load {
		l := &c.s.Load[i]
		if l.Length() == 0 {
			return 0
		}
		end = max(end, int64(l.At)+int64(l.Length()))
	}
	return end
}

func (c *checker) oneKind(f *Fault, path string) bool {
	var kinds []string
	for name, set := range map[string]bool{
		"toxic": f.Toxic != nil, "cut": f.Cut, "kill": f.Kill != "", "stop": f.Stop != "", "start": f.Start != "", "restart": f.Restart != "",
		"rolling": f.Rolling != "", "pause": f.Pause != "", "upgrade": f.Upgrade != "", "mute": f.Mute != "", "transfer": f.Transfer != "",
		"disk": f.Disk != nil, "clock": f.Clock != nil, "tls": f.TLS != "", "dns": len(f.DNS) > 0, "config": f.Config != nil,
	} {
		if set {
			kinds = append(kinds, name)
		}
	}
	slices.Sort(kinds)
	switch len(kinds) {
	case 1:
		return true
	case 0:
		c.say(path, "does nothing; wants one of clock, config, cut, disk, dns, kill, mute, pause, restart, rolling, start, stop, tls, toxic, transfer, upgrade")
	default:
		c.say(path, "does several things (%s); wants one of them", strings.Join(kinds, ", "))
	}
	return false
}

func (c *checker) onLink(f *Fault, path string) {
	for field, set := range map[string]bool{"one_way": f.OneWay, "silent": f.Silent, "carries": f.Carries != "" && f.Mute == ""} {
		if set {
			c.say(path+"."+field, "is for a cut between nodes")
		}
	}
	link := f.Toxic != nil || f.Cut || f.TLS != "" || len(f.DNS) > 0
	if !link {
		if c.given(path + ".between") {
			c.say(path+".between", "is for cut, dns, tls and toxic; %s names its node itself", f.Kind())
		}
		return
	}
	if !slices.Equal(f.Between, []string{"source", "target"}) {
		c.say(path+".between", "allowed: [source, target], and nodes for a cut or a toxic")
	}
	if f.For <= 0 {
		c.say(path+".for", "is missing: a fault on the link heals")
	}
	if f.Toxic != nil {
		c.toxic(f.Toxic, path+".toxic")
	}
	c.dns(f, path)
}

func (c *checker) toxic(t *Toxic, path string) {
	fields, known := toxicFields[t.Type]
	if !known {
		if t.Type == "" && !c.given(path+".type") {
			c.say(path+".type", "is missing; %s", allowed(slices.Sorted(maps.Keys(toxicFields))))
		}
		return // the decoder has said so
	}
	for _, need := range fields.need {
		if !c.given(path + "." + need) {
			c.say(path+"."+need, "is missing: %s wants it", t.Type)
		}
	}
	if t.Type == "slow_close" && t.Stream != "downstream" {
		c.say(path+".stream", "allowed: downstream; when the far end closes late nobody here sees it")
	}
	takes := slices.Concat([]string{"type", "stream"}, fields.need, fields.may)
	for _, name := range []string{"latency", "rate", "delay", "timeout", "average_size", "bytes"} {
		if c.given(path+"."+name) && !slices.Contains(takes, name) {
			c.say(path+"."+name, "%s does not take it; %s", t.Type, allowed(takes))
		}
	}
}

func (c *checker) onNode(f *Fault, path string, down map[string]bool) {
	if f.Slow > 0 && (!f.Kills() && f.Start == "" || f.losesPower()) {
		c.say(path+".slow", "is for kill, stop, start, restart, rolling and upgrade")
	}
	c.unaudited(f, path)
	if f.Disk != nil || f.Clock != nil || f.Config != nil {
		c.disk(f, path, down)
		c.clock(f, path)
		c.config(f, path, down)
		return
	}
	node := f.Node()
	if node == "" {
		return
	}
	kind := f.Kind()
	switch kind {
	case "upgrade":
		c.upgrade(f, path)
		return
	case "mute":
		c.mute(f, path)
	case "transfer":
		c.transfer(f, path)
		return
	}
	if f.Says != "" && kind != "mute" {
		c.say(path+".says", "is for mute")
	}
	if _, isAlias := Alias(node); isAlias {
		c.alias(f, path+"."+kind)
		return
	}
	if !c.among(path+"."+kind, "node", node, c.nodes) {
		return
	}
	switch kind {
	case "pause":
		if f.For <= 0 {
			c.say(path+".for", "is missing: a pause ends")
		}
	case "start":
		if f.For > 0 {
			c.say(path+".for", "start takes no for")
		}
		if !down[node] {
			c.say(path+".start", "%s is not down then; a kill or stop without for comes before it", node)
		}
		down[node] = false
	default:
		if down[node] {
			c.say(path+"."+kind, "%s is down already", node)
		}
		down[node] = f.For <= 0
	}
}

func (c *checker) flap(f *Fault, path string) {
	if f.Flap == nil {
		return
	}
	switch {
	case f.Parts(), f.Paces():
		c.say(path+".flap", "is for the link; what is between nodes is repeated with every and times")
	case f.Toxic == nil && !f.Cut && !f.losesPower():
		c.say(path+".flap", "is for toxic, cut, and the disk's power_loss and torn")
	case f.Flap.On <= 0 || f.Flap.Off <= 0:
		c.say(path+".flap", "wants on and off, both above 0")
	case f.Flap.On+f.Flap.Off > f.For:
		c.say(path+".flap", "on and off together are longer than the fault lasts")
	}
}
