package wire

// PauseChild is the body of POST .../children/{c}/pause. Reason is at most 256 printable bytes (MaxPauseReason).
type PauseChild struct {
	Reason string `json:"reason,omitempty"`
}

// MaxPauseReason is the longest reason of a pause, in bytes.
const MaxPauseReason = 256

// ResumeChild is the body of POST .../children/{c}/resume, which may be absent. AcceptTarget records the ID that the target has now.
type ResumeChild struct {
	AcceptTarget bool `json:"accept_target,omitempty"`
}

// SkipRecord is the body of POST .../children/{c}/skip: the record that a cursor is stuck on. Both members are needed.
type SkipRecord struct {
	Partition *int   `json:"partition"`
	Offset    *int64 `json:"offset"`
}

// TestRemote is the body of POST /v1/remotes/{n}/test. Source is a topic here that a link to Topic would copy; without it what
// only a link can get wrong is not checked.
type TestRemote struct {
	Topic  string `json:"topic"`
	Source string `json:"source,omitempty"`
}

// Results of a check.
const (
	CheckPass = "pass"
	CheckFail = "fail"
)

// RemoteTest is the answer to a test. Class is empty on a pass, else as in Check.
type RemoteTest struct {
	Remote string  `json:"remote"`
	Result string  `json:"result"`
	Class  string  `json:"class"`
	Checks []Check `json:"checks"`
}
