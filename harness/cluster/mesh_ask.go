package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// What a mesh is asked, a line of JSON on a connection of its own.
const (
	askReach = "reach" // the connection goes the way that is named, once the mesh has said yes
	askPart  = "part"
	askMend  = "mend"
	askMet   = "met"
	askCuts  = "cuts" // how many are in force
	askSlow  = "slow"
	askEase  = "ease"
	askPaced = "paced" // how many paces are in force, and what went at one
)

type question struct {
	Ask               string
	From, To, Carries string // of reach
	Cut               Cut    // of part
	Pace              Pace   // of slow
	ID                int    // of mend, met, ease and paced
}

// answer is to every question but reach.
type answer struct {
	ID, Cuts int
	Met      CutMet
	Paces    int
	Bytes    int64
}

// yes is the byte that says that a way is open to its end.
const yes = '+'

// ask takes a connection of the harness.
func (m *mesh) ask(c *net.TCPConn) {
	var q question
	stop := context.AfterFunc(m.alone, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	line, err := bufio.NewReader(c).ReadSlice('\n') // nothing else is sent before the answer
	stop()
	if err != nil || json.Unmarshal(line, &q) != nil {
		reset(c)
		return
	}
	var a answer
	switch q.Ask {
	case askReach:
		m.asked(c, way{q.From, q.To, q.Carries})
		return
	case askPart:
		a.ID = m.part(q.Cut)
	case askMend:
		m.mend(q.ID)
	case askMet:
		a.Met = m.met(q.ID)
	case askCuts:
		a.Cuts = m.partings()
	case askSlow:
		a.ID = m.slow(q.Pace)
	case askEase:
		m.ease(q.ID)
	case askPaced:
		a.Paces, a.Bytes = m.paced(q.ID)
	default:
		reset(c)
		return
	}
	_ = json.NewEncoder(c).Encode(a) // who does not hear it has gone
	_ = c.Close()
}

// asked goes a way for the harness, as a node would: on a connection of its own, whose life it tells (mesh_tell.go).
func (m *mesh) asked(c *net.TCPConn, w way) {
	if m.behind(door{w.to, w.carries}) == "" {
		reset(c)
		return
	}
	mine, near, err := connected()
	if err != nil {
		reset(c)
		return
	}
	m.tasks.Go(func() {
		m.carry(near, w, func() error {
			_, werr := near.Write([]byte{yes})
			return werr
		})
	})
	m.tasks.Go(func() {
		_, _ = io.Copy(mine, c) // until either is over, which tell hears
		_ = mine.Close()
	})
	tell(c, mine)
}

// meshed is a rig whose nodes meet through a mesh. A nil one is a rig in which they do not.
type meshed struct {
	at    func(ctx context.Context) (string, error) // where the mesh is asked
	nodes []string
}

// pose sends a question and returns the connection for the answer.
func (r *meshed) pose(ctx context.Context, q question) (net.Conn, error) {
	address, err := r.at(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: mesh: %w", ErrTrouble, err)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: mesh: %w", ErrTrouble, err)
	}
	line, err := json.Marshal(q)
	if err == nil {
		_, err = c.Write(append(line, '\n'))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: mesh: %w", ErrTrouble, err), c.Close())
	}
	return c, nil
}

func (r *meshed) answer(ctx context.Context, q question) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, controlLimit)
	defer cancel()
	c, err := r.pose(ctx, q)
	if err != nil {
		return a, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if err = errors.Join(json.NewDecoder(c).Decode(&a), c.Close()); err != nil {
		return a, fmt.Errorf("%w: mesh: %w", ErrTrouble, err)
	}
	return a, nil
}

// known tells whether these nodes meet others through the mesh.
func (r *meshed) known(names ...string) error {
	for _, name := range names {
		if r == nil || !slices.Contains(r.nodes, name) {
			return fmt.Errorf("%w: %s has no door through which others come", ErrUnsupported, name)
		}
	}
	return nil
}

// Part is Parted.
func (r *meshed) Part(ctx context.Context, cut Cut) (Parting, error) {
	if err := r.known(slices.Concat(cut.From, cut.To)...); err != nil {
		return nil, err
	}
	a, err := r.answer(ctx, question{Ask: askPart, Cut: cut})
	if err != nil {
		return nil, err
	}
	return &parting{r, a.ID}, nil
}

// Reach is Parted. It returns once the far end is there.
func (r *meshed) Reach(ctx context.Context, from, to, carries string) (net.Conn, error) {
	if err := r.known(from, to); err != nil {
		return nil, err
	}
	c, err := r.pose(ctx, question{Ask: askReach, From: from, To: to, Carries: carries})
	if err != nil {
		return nil, err
	}
	way := newTold(c)
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err = way.Read(make([]byte, 1)); err != nil {
		return nil, errors.Join(fmt.Errorf("from %s to %s (%s): %w", from, to, carries, err), c.Close())
	}
	return way, nil
}

// Partings is Parted. A mesh that does not answer counts as parted: nobody may conclude that all is well.
func (r *meshed) Partings() int {
	if r == nil {
		return 0
	}
	a, err := r.answer(context.Background(), question{Ask: askCuts})
	if err != nil {
		return 1
	}
	return a.Cuts
}

// parting is a cut of a mesh.
type parting struct {
	rig *meshed
	id  int
}

// Met is Parting.
func (p *parting) Met() CutMet {
	a, err := p.rig.answer(context.Background(), question{Ask: askMet, ID: p.id})
	if err != nil {
		return CutMet{} // nothing met it as far as anybody knows: it has not landed
	}
	return a.Met
}

// Mend is Parting.
func (p *parting) Mend(ctx context.Context) error {
	_, err := p.rig.answer(ctx, question{Ask: askMend, ID: p.id})
	return err
}
