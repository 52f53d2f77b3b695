// Package queue gives the records of a partition to competing consumers: leases, acks, redelivery, and the durable frontier
// below which everything is acked.
//
// It promises (BRK-05): a record that was leased and not acked is given again after the visibility timeout; an ack that was
// answered survives a kill after 100 ms and a power loss after 1 s, and what it does not survive is a redelivery, never a lost
// record; no more than max_in_flight records of a partition are leased at once, and no new ones while max_acked_ahead are acked
// above the frontier; of several partitions each has its turn. A lost or torn frontier file means that records are given
// again from the oldest one on, never that some are passed over.
//
// Leases live in memory on the partition's owner and end with its process. The frontier and the acks ahead of it lie in
// consumer.frontier beside the log, and travel with the partition.
//
// # Loops
//
// Run writes frontiers; it ends with its context, and Close does what is left. One timer per partition with leases tells
// when the earliest ends; Close and Release stop it. A consumer who waits does so in the caller's goroutine, woken in
// turn: one record that comes wakes one consumer, and whoever leaves something behind wakes the next.
//
// It refused a scan from the frontier at each consume: a read position in memory, and a heap of what is to be given again,
// make a consume cost what it returns.
package queue

import (
	"log/slog"
	"time"

	"narad.example/narad/partition"
	"narad.example/narad/vfs"
)

// The bounds of one consume (api.md) and the rhythm of the frontier files (broker.md).
const (
	scanBytes   = 4 << 20 // read of one partition for one answer
	answerBytes = 8 << 20 // in one answer; the first record always goes
	writeAfter  = 50 * time.Millisecond
	syncAfter   = 800 * time.Millisecond
	retryAfter  = time.Second
	keepBytes   = 64 << 10 // of reading memory that a partition keeps between consumes
)

// Settings of a topic that leases depend on. Zero values take the defaults of api.md.
type Settings struct {
	VisibilityTimeout time.Duration
	MaxInFlight       int // leases of a partition at once
	MaxAckedAhead     int // acks above a partition's frontier beyond which no new record is leased
}

func (s Settings) filled() Settings {
	if s.VisibilityTimeout <= 0 {
		s.VisibilityTimeout = 30 * time.Second
	}
	if s.MaxInFlight <= 0 {
		s.MaxInFlight = 1024
	}
	if s.MaxAckedAhead <= 0 {
		s.MaxAckedAhead = 1024
	}
	return s
}

// TopicInfo is what the queue must know about a topic. Owned lists the partitions that this node owns; nil is all of them.
type TopicInfo struct {
	ID         string
	Name       string
	Partitions int
	Owned      []int
	Settings   Settings
}

// Topics looks topics up. An error, which should be a *wire.Problem, goes to the client as it is.
type Topics interface {
	Lookup(name string) (TopicInfo, error)
}

// Metrics counts what the queue does. Methods may be called from any goroutine and must be quick.
type Metrics interface {
	// Consumed counts records that were leased and the bytes of their payloads.
	Consumed(topic string, partition, records, bytes int)
	// Extended and Nacked count leases that were renewed and given back.
	Extended(topic string)
	Nacked(topic string)
	// Dropped counts records that retention took before they were acked.
	Dropped(topicID string, partition int, records int64)
	// Failed counts writes of a frontier file that failed; each is tried again.
	Failed(topicID string, partition int)
}

// Options of a Manager. Topics and Store are needed.
type Options struct {
	Topics  Topics
	Store   *partition.Store
	FS      vfs.FS       // nil is the real disk
	Logger  *slog.Logger // nil logs nothing
	Metrics Metrics      // nil counts nothing
	// CommitInterval is the longest time until an ack is on the disk; 0 is a bit below 1 s.
	CommitInterval time.Duration
}

type noMetrics struct{}

func (noMetrics) Consumed(string, int, int, int) {}
func (noMetrics) Extended(string)                {}
func (noMetrics) Nacked(string)                  {}
func (noMetrics) Dropped(string, int, int64)     {}
func (noMetrics) Failed(string, int)             {}
