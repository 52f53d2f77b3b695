package access

import (
	"context"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Proposer proposes a metadata entry and returns once this node applied it (*meta.Store).
type Proposer interface {
	Propose(ctx context.Context, e meta.Entry) (index uint64, err error)
}

// Users administers users. Who may ask for what is decided here; every refusal is a *wire.Problem.
type Users struct {
	control *Control
	propose Proposer
}

// NewUsers makes a Users over the same state as the Control.
func NewUsers(c *Control, p Proposer) *Users { return &Users{control: c, propose: p} }

var (
	errNeedsAdmin = wire.Refuse(wire.Denied, "admin only")
	errNoUser     = wire.Refuse(wire.NotFound, "no such user")
)

// List answers all users in name order, to an admin.
func (s *Users) List(by *Identity) ([]wire.User, error) {
	if !by.Admin {
		return nil, errNeedsAdmin
	}
	users := s.control.state.Users()
	out := make([]wire.User, 0, len(users))
	for i := range users {
		out = append(out, shape(&users[i]))
	}
	return out, nil
}

// Get answers one user, to an admin.
func (s *Users) Get(by *Identity, name string) (wire.User, error) {
	u, err := s.find(by, name)
	if err != nil {
		return wire.User{}, err
	}
	return shape(&u), nil
}

func (s *Users) find(by *Identity, name string) (meta.User, error) {
	if !by.Admin {
		return meta.User{}, errNeedsAdmin
	}
	u, ok := s.control.state.User(name)
	if !ok {
		return meta.User{}, errNoUser
	}
	return u, nil
}

// Create makes a user. Only the root admin gives admin.
func (s *Users) Create(ctx context.Context, by *Identity, req wire.CreateUser) (wire.User, error) {
	if !by.Admin {
		return wire.User{}, errNeedsAdmin
	}
	if !plainName(req.Username, maxUsername) {
		return wire.User{}, wire.Refuse(wire.Invalid, "username must be 1 to 64 of A-Za-z0-9._- and not . or ..")
	}
	if p := s.mayGive(by, req.Grants); p != nil {
		return wire.User{}, p
	}
	if _, taken := s.control.state.User(req.Username); taken {
		return wire.User{}, wire.Refuse(wire.Conflict, "user exists")
	}
	hash, err := s.control.Hash(req.Password)
	if err != nil {
		return wire.User{}, err
	}
	now := time.Now().UnixMilli()
	u := meta.User{Name: req.Username, Hash: hash, Grants: req.Grants, CreatedAtMS: now, UpdatedAtMS: now}
	if _, err = s.propose.Propose(ctx, meta.PutUser{User: u, Create: true}); err != nil {
		return wire.User{}, err
	}
	return shape(&u), nil
}

func (s *Users) mayGive(by *Identity, grants []wire.Grant) *wire.Problem {
	if p := checkGrants(grants); p != nil {
		return p
	}
	if givesAdmin(grants) && !by.Root {
		return wire.Refuse(wire.Denied, "only the root admin gives admin")
	}
	return nil
}

// Delete removes a user; its topics lose their owner. Nobody removes themselves or the root.
func (s *Users) Delete(ctx context.Context, by *Identity, name string) error {
	u, err := s.find(by, name)
	if err != nil {
		return err
	}
	if u.Root {
		return wire.Refuse(wire.Denied, "the root admin cannot be deleted")
	}
	if u.Name == by.Name {
		return wire.Refuse(wire.Denied, "nobody deletes themselves")
	}
	_, err = s.propose.Propose(ctx, meta.DeleteUser{Name: name})
	return err
}

// ReplaceGrants replaces all grants of a user. Nobody changes their own.
func (s *Users) ReplaceGrants(ctx context.Context, by *Identity, name string, grants []wire.Grant) (wire.User, error) {
	u, err := s.find(by, name)
	if err != nil {
		return wire.User{}, err
	}
	if u.Name == by.Name {
		return wire.User{}, wire.Refuse(wire.Denied, "nobody changes their own grants")
	}
	if p := s.mayGive(by, grants); p != nil {
		return wire.User{}, p
	}
	u.Grants = grants
	if err = s.put(ctx, &u); err != nil {
		return wire.User{}, err
	}
	return shape(&u), nil
}

// ChangePassword changes the caller's own password, which takes the current one, or as an admin another user's. The root's is
// changed by the root alone.
func (s *Users) ChangePassword(ctx context.Context, by *Identity, name string, req wire.ChangePassword) error {
	own := name == by.Name
	if !own && !by.Admin {
		return errNeedsAdmin
	}
	u, ok := s.control.state.User(name)
	if !ok {
		return errNoUser
	}
	if u.Root && !by.Root {
		return wire.Refuse(wire.Denied, "the root admin's password is changed by the root admin")
	}
	hash, err := s.control.Hash(req.NewPassword)
	if err != nil {
		return err
	}
	if own && !s.control.same(&u, req.CurrentPassword) {
		return wire.Refuse(wire.Denied, "current_password is wrong")
	}
	u.Hash = hash
	return s.put(ctx, &u)
}

// put stores a changed user from the version that was read.
func (s *Users) put(ctx context.Context, u *meta.User) error {
	from := u.UpdatedAtMS
	u.UpdatedAtMS = max(time.Now().UnixMilli(), from+1) // moves also when the clock does not
	_, err := s.propose.Propose(ctx, meta.PutUser{User: *u, ChangedMS: from})
	return err
}

func shape(u *meta.User) wire.User {
	return wire.User{
		Username: u.Name, Grants: u.Grants, Root: u.Root, CreatedAtMS: u.CreatedAtMS, UpdatedAtMS: u.UpdatedAtMS,
	}
}
