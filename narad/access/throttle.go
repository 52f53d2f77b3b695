package access

import (
	"sync"
	"time"
)

// After five wrong passwords for a user one more try every 12 s (api.md, Basics).
const (
	freeTries = 5
	tryEvery  = 12 * time.Second
)

// throttle counts wrong passwords per existing user, so it never grows beyond the users. A try is taken before bcrypt runs and
// given back when the password was right: guesses that come all at once get no more than the five.
type throttle struct {
	mu    sync.Mutex // guards users
	users map[string]tries
}

type tries struct {
	left int
	at   time.Time // when left was last counted up
}

// take takes one try. When there is none it says how long until the next.
func (t *throttle) take(user string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	u, ok := t.users[user]
	if !ok {
		u = tries{left: freeTries, at: now}
	}
	if more := int(now.Sub(u.at) / tryEvery); more > 0 {
		u.left = min(freeTries, u.left+more)
		u.at = u.at.Add(time.Duration(more) * tryEvery)
	}
	if u.left == freeTries {
		u.at = now // the clock of the next try starts with the first wrong one
	}
	if u.left == 0 {
		return tryEvery - now.Sub(u.at)
	}
	u.left--
	if t.users == nil {
		t.users = map[string]tries{}
	}
	t.users[user] = u
	return 0
}

// right forgets the wrong passwords of a user who has just brought the right one.
func (t *throttle) right(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.users, user)
}
