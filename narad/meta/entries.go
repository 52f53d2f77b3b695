package meta

// EntryType numbers the kinds of Raft entries. Numbers are permanent; an unknown one stops a replica rather than being
// skipped (seed: Writes and their gates).
type EntryType uint8

// The entry types. 33 to 37 belong to remotes; they, and what came after them, are proposed only once every member applies them (WRT-02).
const (
	TypeCreateTopic  EntryType = 1
	TypeAlterTopic   EntryType = 2
	TypeDeleteTopic  EntryType = 3
	TypeAttachChild  EntryType = 4
	TypeDetachChild  EntryType = 5
	TypePutUser      EntryType = 6
	TypeDeleteUser   EntryType = 7
	TypePutMember    EntryType = 8
	TypeStartMove    EntryType = 9
	TypeClaimMove    EntryType = 10
	TypeFlipMove     EntryType = 11
	TypeEndMove      EntryType = 12
	TypeDrainMember  EntryType = 13
	TypeRemoveMember EntryType = 14
	TypePutRemote    EntryType = 33
	TypeDeleteRemote EntryType = 34
	TypeReseal       EntryType = 35
	TypeAttachRemote EntryType = 36
	TypeUpdateRemote EntryType = 37 // pause, resume, accept target, skip, detach of a remote child
	TypeNameCluster  EntryType = 38
	TypePutSchema    EntryType = 39
	NewestType                 = TypePutSchema
	NewestOfRemotes            = TypeUpdateRemote  // what a member must apply before a remote is written
	NewestOlder                = TypePutRemote - 1 // the newest that a release before remotes applies
)

// Entry is one change of the state. The struct is what stands in the Raft log, as one type byte and JSON.
type Entry interface{ Type() EntryType }

// CreateTopic makes a topic; with Parent set it is attached in the same entry. Nodes carries the assignment, so that no timer
// stands between a create and the first consume (broker.md). Refused: name taken (Conflict, also when only the case differs).
// ParentID is the parent that a create with Parent was checked against; another incarnation is a Conflict.
type CreateTopic struct {
	Topic    Topic  `json:"topic"`
	ParentID string `json:"parent_id,omitempty"`
}

// AlterTopic changes the topic of this ID; nil members stay. Nodes are the owners of added partitions.
type AlterTopic struct {
	Name          string   `json:"name"`
	ID            string   `json:"id"`
	RetentionMS   *int64   `json:"retention_ms,omitempty"`
	MaxInFlight   *int     `json:"max_in_flight,omitempty"`
	MaxAckedAhead *int     `json:"max_acked_ahead,omitempty"`
	Partitions    *int     `json:"partitions,omitempty"`
	Nodes         []string `json:"nodes,omitempty"`
}

// DeleteTopic removes the topic of this ID and detaches its local children. It is refused with Conflict while the topic has
// remote children, which DetachChild or UpdateRemote with Detach removes first, unless Links lists each of them (WRT-07). Origin is set when
// it came as a write of the remote plane.
type DeleteTopic struct {
	Name  string   `json:"name"`
	ID    string   `json:"id"`
	Links []string `json:"links,omitempty"` // names of the remote children that go with it
	Origin
}

// AttachChild makes an existing topic a local child. Epoch is fresh; Offsets is the start by parent partition.
type AttachChild struct {
	Parent   string  `json:"parent"`
	ParentID string  `json:"parent_id"`
	Child    string  `json:"child"`
	ChildID  string  `json:"child_id"`
	Epoch    string  `json:"epoch"`
	DelayMS  int64   `json:"delay_ms,omitempty"`
	Offsets  []int64 `json:"offsets"`
}

// DetachChild ends the attach of this epoch of a local child; the child goes on as a topic.
type DetachChild struct {
	Parent string `json:"parent"`
	Child  string `json:"child"`
	Epoch  string `json:"epoch"`
}

// PutUser creates or replaces a user. Create refuses a name that exists; else ChangedMS must be the UpdatedAtMS that the change
// was made from.
type PutUser struct {
	User      User  `json:"user"`
	Create    bool  `json:"create,omitempty"`
	ChangedMS int64 `json:"changed_ms,omitempty"`
}

// DeleteUser removes a user; its topics lose their owner.
type DeleteUser struct {
	Name string `json:"name"`
}

// PutMember records a member, or what its node says of itself now: addresses and release. How it stands with its decommission stays.
type PutMember struct {
	Member Member `json:"member"`
}

// PutRemote creates a remote (FromRevision 0) or changes it from a revision (DEC-31). Salt travels with a create; the first one
// applied stays, and an entry sealed under another is refused with Unavailable (DEC-30).
//
// Revision is set by the state. A create gets credential version 1. A change whose Remote.CredentialVersion is the stored one
// changes the limits alone: address, user, CA and the sealed password stay as they are stored, so it never undoes a Reseal. One
// with the stored version plus 1 replaces them. Any other version is a Conflict.
type PutRemote struct {
	Remote       Remote `json:"remote"`
	FromRevision uint64 `json:"from_revision"`
	Salt         []byte `json:"salt,omitempty"`
	Origin
}

// DeleteRemote removes a remote; the Origin's Force allows it while links use it (WRT-13).
type DeleteRemote struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Origin
}

// Reseal puts a new ciphertext of the same password in place, as a compare-and-set on the credential version (CRD-11). Revision
// and credential version stay (DEC-32), so a remote that was changed meanwhile keeps its newer ciphertext.
type Reseal struct {
	Name              string `json:"name"`
	ID                string `json:"id"`
	CredentialVersion uint64 `json:"credential_version"`
	Ciphertext        []byte `json:"ciphertext"`
	KeyVersion        string `json:"key_version"`
	Fingerprint       string `json:"fingerprint"`
	Origin
}

// AttachRemote makes a stub: Topic has Partitions 0, Parent, a fresh AttachEpoch and Remote set. ParentID and ParentPartitions
// are what it was checked against (WRT-14): anything else is a Conflict.
type AttachRemote struct {
	Topic            Topic  `json:"topic"`
	ParentID         string `json:"parent_id"`
	ParentPartitions int    `json:"parent_partitions"`
	Origin
}

// UpdateRemote changes or ends the attach of this epoch (WRT-14): exactly one of the members below Epoch is set.
type UpdateRemote struct {
	Parent       string    `json:"parent"`
	Child        string    `json:"child"`
	Epoch        string    `json:"epoch"`
	Pause        *PauseSet `json:"pause,omitempty"`
	Resume       bool      `json:"resume,omitempty"`
	AcceptTarget string    `json:"accept_target,omitempty"` // the new target ID; also resumes
	Skip         *SkipOne  `json:"skip,omitempty"`
	Detach       bool      `json:"detach,omitempty"`
	Origin
}

// PauseSet pauses a link.
type PauseSet struct {
	Reason string `json:"reason"`
	AtMS   int64  `json:"at_ms"`
}

// SkipOne skips one offset; at most 4,000 stay per partition, always the newest (WRT-10).
type SkipOne struct {
	Partition int   `json:"partition"`
	Offset    int64 `json:"offset"`
}

// NameCluster gives the cluster its ID, 16 hex, for good: a second one changes nothing.
type NameCluster struct {
	ID string `json:"id"`
}

// PutSchema gives a topic, which Alter names, the next version of its schema and its local children the same one, or makes a topic with
// one: exactly one of Create and Alter is set. Whatever else Create or Alter say happens in the same entry. Base is the version that the
// change was made from, 0 with Create; another one is a Conflict. The schema that the topic has already changes nothing. Refused with Conflict: a
// child of its own, more than MaxSchemas versions.
//
// Sum is the digest of the schema's value (package schema); schemas are compared by it alone.
type PutSchema struct {
	Create *CreateTopic `json:"create,omitempty"`
	Alter  *AlterTopic  `json:"alter,omitempty"`
	Base   int          `json:"base,omitempty"`
	Schema Schema       `json:"schema"`
}

// Type returns TypePutSchema.
func (PutSchema) Type() EntryType { return TypePutSchema }

// Type returns TypeCreateTopic.
func (CreateTopic) Type() EntryType { return TypeCreateTopic }

// Type returns TypeAlterTopic.
func (AlterTopic) Type() EntryType { return TypeAlterTopic }

// Type returns TypeDeleteTopic.
func (DeleteTopic) Type() EntryType { return TypeDeleteTopic }

// Type returns TypeAttachChild.
func (AttachChild) Type() EntryType { return TypeAttachChild }

// Type returns TypeDetachChild.
func (DetachChild) Type() EntryType { return TypeDetachChild }

// Type returns TypePutUser.
func (PutUser) Type() EntryType { return TypePutUser }

// Type returns TypeDeleteUser.
func (DeleteUser) Type() EntryType { return TypeDeleteUser }

// Type returns TypePutMember.
func (PutMember) Type() EntryType { return TypePutMember }

// Type returns TypePutRemote.
func (PutRemote) Type() EntryType { return TypePutRemote }

// Type returns TypeDeleteRemote.
func (DeleteRemote) Type() EntryType { return TypeDeleteRemote }

// Type returns TypeReseal.
func (Reseal) Type() EntryType { return TypeReseal }

// Type returns TypeAttachRemote.
func (AttachRemote) Type() EntryType { return TypeAttachRemote }

// Type returns TypeUpdateRemote.
func (UpdateRemote) Type() EntryType { return TypeUpdateRemote }

// Type returns TypeNameCluster.
func (NameCluster) Type() EntryType { return TypeNameCluster }
