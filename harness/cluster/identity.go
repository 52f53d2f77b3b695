package cluster

import (
	"time"

	"narad.example/fakes"
)

// Edge is what the TLS edge of a rig needs: its authority and certificate, the certificates of its other faces, and the other
// authority, from which one of them comes.
type Edge struct {
	CAPEM, OtherCAPEM string
	Cert              fakes.Cert
	Faces             map[string]fakes.Cert
}

// NewEdge makes both authorities and every certificate for hosts (names and addresses), by the time of the caller.
func NewEdge(hosts ...string) (Edge, error) {
	now := time.Now()
	var ca, other *fakes.CA
	var e Edge
	var err error
	for _, c := range []**fakes.CA{&ca, &other} {
		if *c, err = fakes.NewCA(now); err != nil {
			return e, err
		}
	}
	e.CAPEM, e.OtherCAPEM = ca.PEM(), other.PEM()
	if e.Cert, err = ca.Issue(now, hosts...); err != nil {
		return e, err
	}
	e.Faces, err = ca.Faces(now, other, hosts...)
	return e, err
}
