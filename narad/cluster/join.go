package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/wire"
)

// OpJoin asks to be let into the cluster.
const OpJoin = "Join"

// joining is the question: who asks, and where its Raft is.
type joining struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

// joined is the answer of a node that leads; another one names the leader's RPC address, empty when it knows none.
type joined struct {
	Leads  bool   `json:"leads"`
	Leader string `json:"leader,omitempty"`
}

// AdmissionMeta is what the admission of nodes needs of the metadata; *meta.Store is one.
type AdmissionMeta interface {
	Leader() (id, rpcAddr string, ok bool)
	AddServer(ctx context.Context, id, addr string) error
}

// HandleJoin answers OpJoin. Whoever asks has proved the cluster secret. It may follow the log from then on; its vote the Controller gives
// it once it has registered, and with it its share of the partitions. Refusals are Conflict: the ID or the address is another node's.
func HandleJoin(m AdmissionMeta) peer.Handler {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		var q joining
		if err := json.Unmarshal(body, &q); err != nil || q.ID == "" || q.Addr == "" {
			return nil, wire.Refuse(wire.Invalid, "a request to join that does not decode")
		}
		err := m.AddServer(ctx, q.ID, q.Addr)
		if errors.Is(err, meta.ErrNotLeader) {
			_, addr, _ := m.Leader()
			return json.Marshal(joined{Leader: addr})
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(joined{Leads: true})
	}
}

// JoinerMeta is what a node that waits to be let in needs of its replica; *meta.Store is one.
type JoinerMeta interface {
	Servers() []meta.Server
}

// Joiner lets a node that has no state, and is not one of the first members, into the cluster of its peers. Until it is in it is not ready.
type Joiner struct {
	Meta   JoinerMeta
	Call   func(ctx context.Context, addr, op string, body []byte) ([]byte, error)
	ID     string
	Addr   string   // of its Raft, as the others reach it
	Peers  []string // RPC addresses of nodes that may be members
	Logger *slog.Logger
}

const (
	joinAgain = time.Second
	joinWait  = 5 * time.Second // for one peer's answer
)

// Run asks until the replica shows this node among the servers, or ctx ends. It returns nil.
func (j *Joiner) Run(ctx context.Context) error {
	body, err := json.Marshal(joining{j.ID, j.Addr})
	if err != nil {
		return err
	}
	said := ""
	for ctx.Err() == nil && !slices.ContainsFunc(j.Meta.Servers(), func(s meta.Server) bool { return s.ID == j.ID }) {
		err := j.ask(ctx, body)
		if err == nil {
			err = fmt.Errorf("%w: %s", errNotReached, j.Addr)
		}
		if ctx.Err() == nil && err.Error() != said {
			said = err.Error() // once, not each second
			j.Logger.Warn("this node waits to be let into the cluster", slog.Any("cause", err))
		}
		pause(ctx, joinAgain)
	}
	return nil
}

var (
	errNoPeerLeads = errors.New("no node of cluster.peers leads or knows who does")
	errNotReached  = errors.New("the leader let it in and is now to reach it, at the address that cluster.peers or cluster.advertise_addr gives")
)

// ask goes to each peer and to the leader that one names, until one lets this node in.
func (j *Joiner) ask(ctx context.Context, body []byte) error {
	trouble := errNoPeerLeads
	for _, addr := range j.Peers {
		a, err := j.call(ctx, addr, body)
		if err == nil && !a.Leads && a.Leader != "" {
			a, err = j.call(ctx, a.Leader, body)
		}
		var refusal *wire.Problem
		switch {
		case err == nil && a.Leads:
			return nil
		case errors.As(err, &refusal): // worth more than that another peer is not there
			trouble = err
		}
	}
	return trouble
}

func (j *Joiner) call(ctx context.Context, addr string, body []byte) (a joined, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	answer, err := j.Call(ctx, addr, OpJoin, body)
	if err != nil {
		return a, err
	}
	if json.Unmarshal(answer, &a) != nil {
		return a, errors.New("an answer to a request to join that does not decode")
	}
	return a, nil
}
