package node

import (
	"context"

	"narad.example/narad/api"
	"narad.example/narad/remote/link"
	"narad.example/narad/wire"
)

// apiLinks and apiRemotes turn package api's caller into package link's.
type apiLinks struct{ *link.Service }

// Attach makes a remote child, or checks everything and stores nothing on a dry run.
func (l apiLinks) Attach(ctx context.Context, c api.Caller, parent string, req wire.AttachChild) (wire.Attached, error) {
	return l.Service.Attach(ctx, link.Caller(c), parent, req)
}

// Detach ends a remote child.
func (l apiLinks) Detach(ctx context.Context, c api.Caller, parent, child string, force bool) error {
	return l.Service.Detach(ctx, link.Caller(c), parent, child, force)
}

// DeleteTopic deletes a stub, or a parent with links.
func (l apiLinks) DeleteTopic(ctx context.Context, c api.Caller, name string, force bool) error {
	return l.Service.DeleteTopic(ctx, link.Caller(c), name, force)
}

// Pause stops a remote child.
func (l apiLinks) Pause(ctx context.Context, c api.Caller, parent, child, reason string) (wire.Topic, error) {
	return l.Service.Pause(ctx, link.Caller(c), parent, child, reason)
}

// Resume lets a remote child go on.
func (l apiLinks) Resume(ctx context.Context, c api.Caller, parent, child string, acceptTarget bool) (wire.Topic, error) {
	return l.Service.Resume(ctx, link.Caller(c), parent, child, acceptTarget)
}

// Skip lets a remote child pass a record.
func (l apiLinks) Skip(ctx context.Context, c api.Caller, parent, child string, partition int, offset int64) (wire.Topic, error) {
	return l.Service.Skip(ctx, link.Caller(c), parent, child, partition, offset)
}

type apiRemotes struct{ *link.Service }

// CreateRemote makes a remote.
func (r apiRemotes) CreateRemote(ctx context.Context, c api.Caller, req wire.CreateRemote) (wire.Remote, error) {
	return r.Service.CreateRemote(ctx, link.Caller(c), req)
}

// PatchRemote changes a remote.
func (r apiRemotes) PatchRemote(ctx context.Context, c api.Caller, name string, req wire.PatchRemote) (wire.Remote, error) {
	return r.Service.PatchRemote(ctx, link.Caller(c), name, req)
}

// DeleteRemote removes a remote.
func (r apiRemotes) DeleteRemote(ctx context.Context, c api.Caller, name string, force bool) error {
	return r.Service.DeleteRemote(ctx, link.Caller(c), name, force)
}

// Reencrypt moves every remote to the current key.
func (r apiRemotes) Reencrypt(ctx context.Context, c api.Caller) (wire.Reencrypted, error) {
	return r.Service.Reencrypt(ctx, link.Caller(c))
}

// Test checks a remote.
func (r apiRemotes) Test(ctx context.Context, c api.Caller, name string, req wire.TestRemote) (wire.RemoteTest, error) {
	return r.Service.Test(ctx, link.Caller(c), name, req)
}
