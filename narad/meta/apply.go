package meta

import (
	"errors"
	"fmt"

	"narad.example/narad/wire"
)

// Retry is the text of a refusal whose cause is that the state moved after the caller had read it. Clients match it.
const Retry = "topic changed since it was read; try again"

// Apply applies one entry as one transaction and wakes Changed. A refusal is a *wire.Problem and changes nothing but Applied. Any
// other error means that this release cannot apply the entry at all; nothing moves then and the replica must stop.
//
// The rules here are the last word, on the state as it is when the entry is applied; packages in front check the same things
// earlier to give a better text. They must depend on nothing but the state and the entry: every replica comes to the same end.
func (s *State) Apply(index uint64, e Entry) error { return s.ApplyIn(0, index, e) }

// ApplyIn is Apply of an entry that was proposed in a term of Raft, which the trail keeps (DEC-13).
func (s *State) ApplyIn(term, index uint64, e Entry) error {
	txn := s.db.Txn(true)
	defer txn.Abort() // does nothing after Commit
	if err := apply(tx{txn}, e); err != nil {
		var refusal *wire.Problem
		if errors.As(err, &refusal) {
			s.advance(index, false)
		}
		return err
	}
	tx{txn}.trace(index, term, e)
	txn.Commit()
	s.advance(index, touchesRemotes(e))
	return nil
}

func touchesRemotes(e Entry) bool {
	switch e.Type() {
	case TypePutRemote, TypeDeleteRemote, TypeReseal:
		return true
	}
	return false
}

// apply returns a bare *wire.Problem for a refusal.
func apply(t tx, e Entry) error {
	var p *wire.Problem
	switch e := e.(type) {
	case CreateTopic:
		p = createTopic(t, e)
	case AlterTopic:
		p = alterTopic(t, e)
	case DeleteTopic:
		p = deleteTopic(t, e)
	case AttachChild:
		p = attachChild(t, e)
	case DetachChild:
		p = detachChild(t, e)
	case PutUser:
		p = putUser(t, e)
	case DeleteUser:
		p = deleteUser(t, e)
	case PutMember:
		p = putMember(t, e)
	case StartMove:
		p = startMove(t, e)
	case ClaimMove:
		p = claimMove(t, e)
	case FlipMove:
		p = flipMove(t, e)
	case EndMove:
		p = endMove(t, e)
	case DrainMember:
		p = drainMember(t, e)
	case RemoveMember:
		p = removeMember(t, e)
	case PutRemote:
		p = putRemote(t, e)
	case DeleteRemote:
		p = deleteRemote(t, e)
	case Reseal:
		p = reseal(t, e)
	case AttachRemote:
		p = attachRemote(t, e)
	case UpdateRemote:
		p = updateRemote(t, e)
	case NameCluster:
		p = nameCluster(t, e)
	case PutSchema:
		p = putSchema(t, e)
	default:
		return fmt.Errorf("%w: type %d", ErrUndecodable, e.Type())
	}
	if p != nil {
		return p
	}
	return nil
}

func putUser(t tx, e PutUser) *wire.Problem {
	if e.User.Name == "" {
		return wire.Refuse(wire.Invalid, "a user needs a name")
	}
	old := t.user(e.User.Name)
	switch {
	case e.Create && old != nil:
		return wire.Refuse(wire.Conflict, "user already exists")
	case !e.Create && old == nil:
		return wire.Refuse(wire.NotFound, "no such user")
	case !e.Create && old.UpdatedAtMS != e.ChangedMS:
		return wire.Refuse(wire.Conflict, "user changed since it was read; try again")
	}
	u := e.User
	t.put(tableUsers, &u)
	return nil
}

func deleteUser(t tx, e DeleteUser) *wire.Problem {
	u := t.user(e.Name)
	if u == nil {
		return wire.Refuse(wire.NotFound, "no such user")
	}
	if u.Root {
		return wire.Refuse(wire.Conflict, "the root user cannot be deleted")
	}
	t.drop(tableUsers, u)
	for _, owned := range rows[Topic](t.txn, tableTopics, indexKey) {
		if owned.Owner == e.Name {
			n := *owned
			n.Owner = ""
			t.put(tableTopics, &n)
		}
	}
	return nil
}
