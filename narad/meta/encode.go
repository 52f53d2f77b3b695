package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrUndecodable is returned by Decode for an entry that this release cannot apply: an unknown type, an unknown member or broken
// JSON. A replica that meets one stops (seed: Writes and their gates).
var ErrUndecodable = errors.New("meta: entry that this release cannot apply")

// Encode writes an entry as it stands in the Raft log and travels to the leader: one type byte and JSON.
func Encode(e Entry) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode entry type %d: %w", e.Type(), err)
	}
	return append([]byte{byte(e.Type())}, body...), nil
}

// Decode reads what Encode wrote. It refuses a member that it does not know, since a replica that skipped one would no longer
// hold the same state as the others. The error is ErrUndecodable and never carries the entry's bytes.
func Decode(b []byte) (Entry, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrUndecodable)
	}
	body := b[1:]
	switch t := EntryType(b[0]); t {
	case TypeCreateTopic:
		return decode[CreateTopic](body)
	case TypeAlterTopic:
		return decode[AlterTopic](body)
	case TypeDeleteTopic:
		return decode[DeleteTopic](body)
	case TypeAttachChild:
		return decode[AttachChild](body)
	case TypeDetachChild:
		return decode[DetachChild](body)
	case TypePutUser:
		return decode[PutUser](body)
	case TypeDeleteUser:
		return decode[DeleteUser](body)
	case TypePutMember:
		return decode[PutMember](body)
	case TypeStartMove:
		return decode[StartMove](body)
	case TypeClaimMove:
		return decode[ClaimMove](body)
	case TypeFlipMove:
		return decode[FlipMove](body)
	case TypeEndMove:
		return decode[EndMove](body)
	case TypeDrainMember:
		return decode[DrainMember](body)
	case TypeRemoveMember:
		return decode[RemoveMember](body)
	case TypePutRemote:
		return decode[PutRemote](body)
	case TypeDeleteRemote:
		return decode[DeleteRemote](body)
	case TypeReseal:
		return decode[Reseal](body)
	case TypeAttachRemote:
		return decode[AttachRemote](body)
	case TypeUpdateRemote:
		return decode[UpdateRemote](body)
	case TypeNameCluster:
		return decode[NameCluster](body)
	case TypePutSchema:
		return decode[PutSchema](body)
	default:
		return nil, fmt.Errorf("%w: type %d", ErrUndecodable, t)
	}
}

func decode[E Entry](body []byte) (Entry, error) {
	var e E
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return nil, fmt.Errorf("%w: type %d does not decode", ErrUndecodable, e.Type())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: type %d has a tail", ErrUndecodable, e.Type())
	}
	return e, nil
}
