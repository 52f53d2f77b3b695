package run

import (
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// Phases of a scenario, as events name them.
const (
	PhaseStart   = "start"   // clusters, topics, links
	PhaseFaults  = "faults"  // load with faults: safety is owed
	PhaseHeal    = "heal"    // everything is taken back
	PhaseDrain   = "drain"   // liveness is owed
	PhaseReading = "reading" // both logs are read back
	PhaseJudge   = "judge"
)

// Progress is what a live display shows.
type Progress struct {
	Scenario string
	Phase    string
	At       time.Duration // since the start of the scenario
	Produced int64         // acknowledged
	OnWire   int64
	OnTarget int64
	Links    []LinkProgress
	Faults   []string // in force now
}

// LinkProgress is one link in Progress.
type LinkProgress struct {
	Child string
	State string
	Lag   int64
}

// Events follows a run. Its methods are called by several goroutines and must not block.
type Events interface {
	Started(scenario, file, backend string, seed uint64)
	Phase(scenario, phase string)
	Progress(p Progress)
	Ended(r ledger.ScenarioRun)
}

// Silent is Events that nobody sees.
type Silent struct{}

// Started does nothing.
func (Silent) Started(string, string, string, uint64) {}

// Phase does nothing.
func (Silent) Phase(string, string) {}

// Progress does nothing.
func (Silent) Progress(Progress) {}

// Ended does nothing.
func (Silent) Ended(ledger.ScenarioRun) {}

// Options of one scenario.
type Options struct {
	Backend  cluster.Backend
	Binaries cluster.Binaries
	Seed     uint64 // the run's; the scenario's own is derived from it by name
	Dir      string // the scenario's folder, made anew
	Virtual  bool   // inside a bubble
	Events   Events // nil is Silent
}

// Intervals of the run.
const (
	sampleEvery        = 500 * time.Millisecond
	sampleEveryVirtual = time.Second
	callLimit          = 15 * time.Second  // of one admin request
	memberLimit        = 5 * time.Minute   // of a join, or of a decommission from its begin until the node has left
	attachLimit        = 70 * time.Second  // of an attach with its checks, retries included
	lookLimit          = 3 * time.Second   // of one look at a node while it may be down
	setupLimit         = 150 * time.Second // from an empty rig to attached links
	healLimit          = 60 * time.Second
	closeLimit         = 60 * time.Second
	readLimit          = 180 * time.Second
)

func (o *Options) sampleEvery() time.Duration {
	if o.Virtual {
		return sampleEveryVirtual
	}
	return sampleEvery
}

// A load of many hours is looked at about that often, and less often than usual therefore.
const longSamples = 2000

// sampleLoad is how long the sampler waits while a load of that length runs.
func (o *Options) sampleLoad(length time.Duration) time.Duration {
	return max(o.sampleEvery(), (length / longSamples).Truncate(time.Second))
}

// RunsOn tells whether a scenario may run on a backend, and if not why.
func RunsOn(s *scenarios.Scenario, backend string) (reason string, ok bool) {
	if s.Backends == nil {
		return "", true
	}
	for _, b := range s.Backends.Only {
		if b == backend {
			return "", true
		}
	}
	return s.Backends.Reason, false
}
