package sim

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"narad.example/harness/cluster"
)

// changedName is the changed answers to one name. Only nodes of the source meet them; the harness and the other hosts see the truth.
type changedName struct {
	host    string
	answers []string // nil: none is changed
	met     cluster.Lookups
}

// answer changes what a name is answered; nil is the truth again.
func (n *Network) answer(host string, answers []string) error {
	for _, a := range answers {
		if slices.Contains(cluster.Answers, a) {
			continue
		}
		if _, err := netip.ParseAddr(a); err != nil {
			return fmt.Errorf("%w: %q is no address and none of %s", cluster.ErrTrouble, a, strings.Join(cluster.Answers, ", "))
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed.host, n.changed.answers = host, slices.Clone(answers)
	return nil
}

func (n *Network) asked() cluster.Lookups {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed.met
}

// tell counts what became of a changed answer.
func (n *Network) tell(count func(*cluster.Lookups), changed bool) {
	if !changed {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	count(&n.changed.met)
}

// lookup resolves an address; changed tells that the answers are not the truth.
func (h *Host) lookup(ctx context.Context, address string) (list []netip.AddrPort, changed bool, err error) {
	truth, err := h.net.resolve(address)
	if err != nil {
		return nil, false, err
	}
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, err
	}
	h.net.mu.Lock()
	answers := h.net.changed.answers
	changed = len(answers) > 0 && name == h.net.changed.host && strings.HasPrefix(h.name, cluster.Source+"-")
	if changed {
		h.net.changed.met.Asked++
	}
	h.net.mu.Unlock()
	if !changed {
		return []netip.AddrPort{truth}, false, nil
	}
	for _, a := range answers {
		switch a {
		case cluster.AnswerTruth:
			list = append(list, truth)
		case cluster.AnswerNone:
			return nil, true, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		case cluster.AnswerFailure:
			return nil, true, &net.DNSError{Err: "server misbehaving", Name: name, IsTemporary: true}
		case cluster.AnswerSilence:
			<-ctx.Done()
			return nil, true, &net.DNSError{Err: ctx.Err().Error(), Name: name, IsTimeout: true}
		default:
			ip, perr := netip.ParseAddr(a)
			if perr != nil {
				return nil, true, perr
			}
			list = append(list, netip.AddrPortFrom(ip, truth.Port()))
		}
	}
	return list, true, nil
}
