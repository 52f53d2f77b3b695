package target

import (
	"net/http"
	"strconv"
	"time"
)

const (
	maxRetryAfter = 60 * time.Second
	minRetryAfter = 250 * time.Millisecond
)

// RetryAfter reads the header of a 429: whole seconds, or an HTTP date measured against now, at most 60 s. It is 0 when the
// header asks for no time that can be kept, whereupon the gate's own backoff holds: absent, given twice, zero, negative, a
// fraction, text, a date that has passed (DEC-03).
func RetryAfter(h http.Header, now time.Time) time.Duration {
	values := h.Values("Retry-After")
	if len(values) != 1 {
		return 0
	}
	v := values[0]
	if digits(v) {
		n, err := strconv.Atoi(v)
		if err != nil || n > int(maxRetryAfter/time.Second) {
			return maxRetryAfter // so many digits that it is no number is a long time too
		}
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil || !at.After(now) {
		return 0
	}
	return max(minRetryAfter, min(maxRetryAfter, at.Sub(now)))
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
