// Package seglog is the broker's one storage engine: a log of frames in segment files, checksummed, with group commit. The
// ingress WAL and every partition lie on it. DESIGN.md tells why it is as it is and what happens in each kind of failure.
//
// # Promise
//
// When Append returns without an error its frames are on the disk, in one run of sequence numbers, and every later Open
// finds them, after a kill and after a power loss alike. Frames that were never acknowledged may or may not be found, but
// always from the front: there is never a gap. A damaged frame is never read as a good one.
//
// # Format, version 1
//
// A log is a directory of segments. A segment's name is its first sequence number in 20 decimal digits and ".log". Numbers
// in files are little endian. It begins with a header of 24 bytes:
//
//	 0  8  magic "NARADSEG"
//	 8  4  version, 1
//	12  8  first sequence number
//	20  4  CRC-32C of the bytes before
//
// Frames follow without padding:
//
//	 0  4  CRC-32C of the body and then of the 16 bytes that follow here
//	 4  4  length of the body, at most MaxBody
//	 8  8  sequence number
//	16  4  how many frames of its group stand before it
//	20  .  body
//
// A group is what was written at once. Since it is written only after the one before is synced, the last field tells what recovery must know: a bad
// frame that is followed by a good one of a later group was once durable, so it is damage and never a torn write. (A draft, Options.Draft, is not
// synced after each group, and nobody opens one again that was not synced at its end.)
//
// A file "<segment>.torn-<offset>" holds what recovery cut from that segment, beginning at that offset. Nothing reads it; it
// is there for whoever investigates, who may delete it.
//
// # Loops
//
// None. Whoever appends leads the commit or waits for the one who does (package cycle). A draft syncs each full segment in a goroutine that Settle
// and Close wait for.
package seglog

import (
	"errors"
	"fmt"
)

var (
	// ErrDamaged says that a frame which was durable once does not read back. It is wrapped by *Damage.
	ErrDamaged = errors.New("the log is damaged")
	// ErrTrimmed is returned by Read below First.
	ErrTrimmed = errors.New("the log no longer holds this sequence number")
	// ErrFailed is returned by Append, and wraps the cause, once a write or a sync has failed: what the disk holds is
	// unknown then, and asking again proves nothing. Only a new Open ends it.
	ErrFailed = errors.New("the log has failed and takes no more records")
	// ErrFull is returned by Append when the disk is full. Nothing was stored, and a later Append may succeed.
	ErrFull = errors.New("the disk is full")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the log is closed")
	// ErrVersion is returned by Open for a segment that a later release has written.
	ErrVersion = errors.New("the segment has a version of the format that this release does not read")
	// ErrTooLarge is returned by Append for a batch with a body above MaxBody.
	ErrTooLarge = errors.New("the frame is larger than the log takes")
)

// MaxBody is the largest body of a frame, in bytes.
const MaxBody = 32 << 20

// Damage names where a log is damaged. It is an ErrDamaged.
type Damage struct {
	File   string
	Offset int64 // of the first frame that does not read back
	Why    string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("the log is damaged: %s at offset %d: %s", d.File, d.Offset, d.Why)
}

// Is makes a Damage an ErrDamaged.
func (d *Damage) Is(target error) bool { return target == ErrDamaged }
