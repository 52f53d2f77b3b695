package explore

import "narad.example/scenarios"

// windows lays one thing that happens after the other, with quiet between them: each must be seen to land and to heal, and needs traffic before,
// during and after it. What may overlap does so inside one window.
func (g *generator) windows(fake, calm bool) {
	d := g.dice("windows")
	at := g.first
	count := d.between(1, 3)
	switch {
	case calm:
		count = 0
	case fake:
		count = d.between(0, 2)
	}
	for range count {
		at = g.window(d, at, fake) + d.tenths(20, 60)
	}
	g.end = max(at+d.tenths(30, 60), 20*second)
	if fake {
		g.end = max(g.end, 30*second) // a script wants some dozens of requests
	}
}

// window fills one window from at on and returns its end.
func (g *generator) window(d dice, at scenarios.Duration, fake bool) scenarios.Duration {
	switch n := d.IntN(100); {
	case n < 33:
		return g.onLink(d, at)
	case n < 45:
		return g.cutInLatency(d, at)
	case n < 55:
		return g.onDisk(d, at, fake)
	case n < 74:
		return g.onNode(d, at, fake)
	case n < 80:
		return g.onClock(d, at, fake)
	case n < 89:
		// A node goes while the link is bad. The link is bad for longer, so that traffic meets it while the node is there.
		g.onLink(d, at)
		link := len(g.s.Faults) - 1
		back := g.onNode(d, at+d.tenths(20, 30), fake)
		f := &g.s.Faults[link]
		f.For = max(f.For, back+3*second-at)
		return f.At + f.For + settles(f.Toxic)
	}
	return g.admin(d, at, fake)
}

func (g *generator) fault(f scenarios.Fault) { g.s.Faults = append(g.s.Faults, f) }

var between = []string{"source", "target"}

// onLink adds a toxic or a cut.
func (g *generator) onLink(d dice, at scenarios.Duration) scenarios.Duration {
	f := scenarios.Fault{At: at, For: d.tenths(25, 90), Between: between}
	switch {
	case d.percent(25):
		f.Cut = true
		if d.percent(50) {
			f.Flap = flap(d, f.For)
		} else if d.percent(30) {
			f.For = d.tenths(100, 250)
		}
	default:
		f.Toxic = toxic(d)
		if breaks(f.Toxic.Type) && d.percent(60) {
			f.Flap = flap(d, f.For)
		}
	}
	g.fault(f)
	return at + f.For + settles(f.Toxic)
}

// cutInLatency breaks connections again and again inside latency, which keeps uploads on the way so that there is something to hit.
func (g *generator) cutInLatency(d dice, at scenarios.Duration) scenarios.Duration {
	length := d.tenths(25, 90)
	latency := d.millis(20, 200)
	proven := 2*second + whole(20*latency) // the probes that measure the latency must have passed before anything breaks
	slow := scenarios.Fault{
		At: at, For: proven + length + 3*second, Between: between,
		Toxic: &scenarios.Toxic{Type: "latency", Stream: "upstream", Latency: latency},
	}
	g.fault(slow)
	cut := pick(d,
		&scenarios.Toxic{Type: "reset_peer", Stream: stream(d)},
		&scenarios.Toxic{Type: "limit_data", Stream: "upstream", Bytes: scenarios.Size(d.between(2_000, 20_000))})
	g.fault(scenarios.Fault{At: at + proven, For: length, Between: between, Toxic: cut, Flap: flap(d, length)})
	return at + slow.For + settles(slow.Toxic)
}

// settles is how much longer than asked for a toxic holds the link: a fault ends when its probes have crossed the link with the toxic on it, and when
// what the toxic held has gone. The next fault on the link must not meet them.
func settles(t *scenarios.Toxic) scenarios.Duration {
	if t == nil {
		return second
	}
	switch t.Type {
	case "latency":
		return second + whole(8*t.Latency)
	case "bandwidth":
		return 8 * second
	case "slow_close":
		return 2*second + whole(4*t.Delay)
	case "timeout":
		return 2*second + whole(t.Timeout)
	}
	return 2 * second
}

func stream(d dice) string { return pick(d, "upstream", "downstream") }

func breaks(kind string) bool {
	return kind == "reset_peer" || kind == "timeout" || kind == "limit_data"
}

// flap is one that switches a few times within length.
func flap(d dice, length scenarios.Duration) *scenarios.Flap {
	on, off := d.tenths(3, 10), d.tenths(4, 12)
	return &scenarios.Flap{On: min(on, whole(length/3)), Off: min(off, whole(length/3))}
}

func toxic(d dice) *scenarios.Toxic {
	t := &scenarios.Toxic{Type: pick(d, "latency", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data"), Stream: stream(d)}
	switch t.Type {
	case "latency":
		t.Latency = d.millis(50, 1500)
	case "bandwidth":
		t.Rate = scenarios.ByteRate(d.between(8, 64) << 10)
	case "slow_close":
		t.Stream, t.Delay = "downstream", d.millis(200, 2000)
	case "timeout":
		t.Timeout = d.millis(50, 3000)
	case "reset_peer":
		if d.percent(50) {
			t.Timeout = d.millis(10, 500)
		}
	case "slicer":
		t.AverageSize, t.Delay = scenarios.Size(d.between(64, 512)), d.millis(1, 4)
	case "limit_data":
		t.Bytes = scenarios.Size(d.between(1_000, 50_000))
	}
	return t
}

// onNode takes a node away for a while. A fake is no node, so the source is the only one then.
func (g *generator) onNode(d dice, at scenarios.Duration, fake bool) scenarios.Duration {
	node := pick(d, sourceNode, targetNode)
	if fake {
		node = sourceNode
	}
	length := d.tenths(20, 60)
	switch d.IntN(4) {
	case 0:
		length = d.tenths(20, 120)
		g.fault(scenarios.Fault{At: at, For: length, Pause: node})
	case 1:
		g.fault(scenarios.Fault{At: at, For: length, Stop: node})
	case 2:
		g.fault(scenarios.Fault{At: at, For: length, Kill: node})
	default:
		g.fault(scenarios.Fault{At: at, Kill: node})
		g.fault(scenarios.Fault{At: at + length, Start: node})
	}
	return at + length
}
