package client

import (
	"context"
	"net/http"

	"narad.example/narad/wire"
)

// Members lists the members of the cluster; detail with the partitions of each.
func (c *Client) Members(ctx context.Context, detail bool) (wire.Members, error) {
	var out wire.Members
	_, err := c.do(ctx, request{method: http.MethodGet, path: v1("cluster", "members"), query: flag("detail", detail), want: ok, into: &out})
	return out, err
}

// Decommission begins to move everything away from a member, which then leaves the cluster. A refusal is a 409 with the reasons.
func (c *Client) Decommission(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodPost, path: v1("cluster", "members", id, "decommission"), want: none})
	return err
}

// PlanDecommission tells what a decommission would find, and begins none.
func (c *Client) PlanDecommission(ctx context.Context, id string) (wire.Decommission, error) {
	var out wire.Decommission
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: v1("cluster", "members", id, "decommission"), query: flag("dry_run", true), want: ok, into: &out,
	})
	return out, err
}

// CancelDecommission lets a member stay.
func (c *Client) CancelDecommission(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: v1("cluster", "members", id, "decommission"), want: none})
	return err
}

// Forget takes a node that was let in and never became a member out of the cluster.
func (c *Client) Forget(ctx context.Context, id string) (wire.Forgotten, error) {
	var out wire.Forgotten
	_, err := c.do(ctx, request{method: http.MethodPost, path: v1("cluster", "members", id, "forget"), want: ok, into: &out})
	return out, err
}
