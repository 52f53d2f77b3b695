package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"narad.example/narad/wire"
)

// Users is the part of the API that administers users.
type Users struct{ c *Client }

// Users returns the part that administers users.
func (c *Client) Users() Users { return Users{c} }

// Create makes a user.
func (u Users) Create(ctx context.Context, req wire.CreateUser) (wire.User, error) {
	var out wire.User
	_, err := u.c.do(ctx, request{method: http.MethodPost, path: v1("users"), json: req, want: created, into: &out})
	return out, err
}

// List lists all users in name order.
func (u Users) List(ctx context.Context) ([]wire.User, error) {
	var out []wire.User
	_, err := u.c.do(ctx, request{method: http.MethodGet, path: v1("users"), want: ok, into: &out})
	return out, err
}

// Get reads one user.
func (u Users) Get(ctx context.Context, name string) (wire.User, error) {
	var out wire.User
	_, err := u.c.do(ctx, request{method: http.MethodGet, path: v1("users", name), want: ok, into: &out})
	return out, err
}

// Delete removes a user.
func (u Users) Delete(ctx context.Context, name string) error {
	_, err := u.c.do(ctx, request{method: http.MethodDelete, path: v1("users", name), want: none})
	return err
}

// ReplaceGrants replaces all grants of a user.
func (u Users) ReplaceGrants(ctx context.Context, name string, grants []wire.Grant) (wire.User, error) {
	if grants == nil {
		grants = []wire.Grant{}
	}
	var out wire.User
	_, err := u.c.do(ctx, request{
		method: http.MethodPut, path: v1("users", name, "grants"), json: wire.ReplaceGrants{Grants: grants}, want: ok, into: &out,
	})
	return out, err
}

// ChangePassword changes a password; current is needed for one's own.
func (u Users) ChangePassword(ctx context.Context, name string, req wire.ChangePassword) error {
	_, err := u.c.do(ctx, request{method: http.MethodPut, path: v1("users", name, "password"), json: req, want: none})
	return err
}

// Remotes is the part of the API that administers remotes.
type Remotes struct{ c *Client }

// Remotes returns the part that administers remotes.
func (c *Client) Remotes() Remotes { return Remotes{c} }

func nodes(with bool) url.Values {
	if with {
		return nil
	}
	return url.Values{"nodes": {"false"}}
}

// Create makes a remote. The request carries a password.
func (r Remotes) Create(ctx context.Context, req wire.CreateRemote) (wire.Remote, error) {
	var out wire.Remote
	_, err := r.c.do(ctx, request{method: http.MethodPost, path: v1("remotes"), json: req, want: created, into: &out})
	return out, err
}

// List lists all remotes, with every node's view unless withNodes is false.
func (r Remotes) List(ctx context.Context, withNodes bool) (wire.Remotes, error) {
	var out wire.Remotes
	_, err := r.c.do(ctx, request{method: http.MethodGet, path: v1("remotes"), query: nodes(withNodes), want: ok, into: &out})
	return out, err
}

// Get reads one remote.
func (r Remotes) Get(ctx context.Context, name string, withNodes bool) (wire.Remote, error) {
	var out wire.Remote
	_, err := r.c.do(ctx, request{method: http.MethodGet, path: v1("remotes", name), query: nodes(withNodes), want: ok, into: &out})
	return out, err
}

// Patch changes a remote.
func (r Remotes) Patch(ctx context.Context, name string, req wire.PatchRemote) (wire.Remote, error) {
	var out wire.Remote
	_, err := r.c.do(ctx, request{method: http.MethodPatch, path: v1("remotes", name), json: req, want: ok, into: &out})
	return out, err
}

// Delete removes a remote; force while links use it.
func (r Remotes) Delete(ctx context.Context, name string, force bool) error {
	_, err := r.c.do(ctx, request{method: http.MethodDelete, path: v1("remotes", name), query: flag("force", force), want: none})
	return err
}

// Test checks a remote from the node that is asked. A check that fails is an answer, not an error.
func (r Remotes) Test(ctx context.Context, name string, req wire.TestRemote) (wire.RemoteTest, error) {
	var out wire.RemoteTest
	_, err := r.c.do(ctx, request{method: http.MethodPost, path: v1("remotes", name, "test"), json: req, want: ok, into: &out})
	return out, err
}

// Reencrypt seals every remote's password under the current key. A remote that cannot be opened is part of the answer.
func (r Remotes) Reencrypt(ctx context.Context) (wire.Reencrypted, error) {
	var out wire.Reencrypted
	_, err := r.c.do(ctx, request{method: http.MethodPost, path: v1("cluster", "reencrypt-remotes"), want: ok, into: &out})
	return out, err
}

// Moves lists the partitions that are on their way to another member.
func (c *Client) Moves(ctx context.Context) (wire.Moves, error) {
	var out wire.Moves
	_, err := c.do(ctx, request{method: http.MethodGet, path: v1("cluster", "moves"), want: ok, into: &out})
	return out, err
}

// AbortMove ends the move of a partition; its owner keeps it.
func (c *Client) AbortMove(ctx context.Context, topic string, partition int) (wire.AbortedMove, error) {
	var out wire.AbortedMove
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: v1("cluster", "moves", topic, strconv.Itoa(partition), "abort"), want: []int{http.StatusAccepted}, into: &out,
	})
	return out, err
}
