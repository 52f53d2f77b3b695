package spawn

import (
	"os"
	"syscall"
	"time"
)

// Patience is the real time that a worker of virtual time gets without getting further before it counts as hung: a hundred times what most
// scenarios take, since on a machine that is busy with other things a worker gets little of it.
const Patience = 5 * time.Minute

// grace is how long a process that was asked for its stacks has to write them.
const grace = 5 * time.Second

// Leash ends a process that takes too long, with everything that it started.
type Leash struct {
	released, ended chan struct{}
	further         chan struct{}
	late            bool // written before ended is closed
}

// Hold gives a process that a Spawner started this much real time. One that is not released by then is asked for its stacks (SIGQUIT: a Go
// program writes all of them to its standard error and ends), and its group is killed 5 s later, or at the release when that comes before.
func Hold(p *os.Process, patience time.Duration) *Leash {
	return hold(patience, func() { _ = p.Signal(syscall.SIGQUIT) }, func() { _ = KillGroup(p.Pid) }) // it may be gone by itself
}

func hold(patience time.Duration, ask, kill func()) *Leash {
	l := &Leash{released: make(chan struct{}), ended: make(chan struct{}), further: make(chan struct{}, 1)}
	go func() {
		defer close(l.ended)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		for waits := true; waits; {
			select {
			case <-l.released:
				return
			case <-l.further:
				timer.Reset(patience)
			case <-timer.C:
				waits = false
			}
		}
		l.late = true
		ask()
		timer.Reset(grace)
		select {
		case <-l.released:
		case <-timer.C:
		}
		kill()
	}()
	return l
}

// Renew gives the process the whole time anew from now on: it got further. It never waits and does nothing for one that was late already.
func (l *Leash) Renew() {
	select {
	case l.further <- struct{}{}:
	default: // one that was not seen yet
	}
}

// Release ends the watch, once, and tells whether the process had to be ended.
func (l *Leash) Release() (late bool) {
	close(l.released)
	<-l.ended
	return l.late
}
