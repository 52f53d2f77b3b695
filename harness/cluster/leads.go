package cluster

import (
	"context"
	"strings"
)

// leadsLine stands in the metrics of the node whose Raft leads.
const leadsLine = "\nnarad_raft_state{state=\"leader\"} 1\n"

// Leads tells whether a node says that it leads its cluster.
func Leads(ctx context.Context, n Node) bool {
	page, err := n.Metrics(ctx)
	return err == nil && strings.Contains(page, leadsLine)
}
