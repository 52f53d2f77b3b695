package link

import (
	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

func invalid(format string, args ...any) *wire.Problem {
	return wire.Refuse(wire.Invalid, format, args...)
}

// plainName tells whether s is 1 to most bytes of A-Za-z0-9._- and neither "." nor "..": topic names and usernames.
func plainName(s string, most int) bool {
	if s == "" || len(s) > most || s == "." || s == ".." {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// remoteName tells whether s matches [a-z][a-z0-9-]{0,62}.
func remoteName(s string) bool {
	if s == "" || len(s) > 63 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func checkRemoteName(name string) error {
	if !remoteName(name) {
		return invalid("name must match [a-z][a-z0-9-]{0,62}")
	}
	return nil
}

// checkURL returns the canonical URL, once the guard lets it pass (NET-04). The refusal names the rule alone (DEC-20).
func (s *site) checkURL(raw string) (string, error) {
	canonical, err := outbound.CanonicalURL(raw)
	if err != nil {
		return "", invalid("%s", err)
	}
	switch outbound.RefusedReason(s.o.Guard.CheckURL(canonical)) {
	case "":
		return canonical, nil
	case outbound.RefusedPort:
		err = invalid("url: its port is not in remotes.allowed_ports")
	case outbound.RefusedHost:
		err = invalid("url: its host is not in remotes.allowed_hosts")
	default:
		err = invalid("url: its address is refused unless remotes.allow_addresses lists it")
	}
	return "", err
}

func checkUsername(name string) error {
	if !plainName(name, 64) {
		return invalid("username must be 1 to 64 of A-Za-z0-9._- and neither . nor ..")
	}
	return nil
}

func checkPassword(password string) error {
	if len(password) < 24 || len(password) > 72 {
		return invalid("password must have 24 to 72 bytes")
	}
	return nil
}

func checkCA(bundle string) error {
	if bundle == "" {
		return nil
	}
	if _, err := outbound.ParseCA(bundle); err != nil {
		return invalid("%s", err)
	}
	return nil
}

// limitRange is one row of api.md's table of limits.
type limitRange struct {
	name      string
	low, high int64
}

var (
	rangeInFlight = limitRange{"max_in_flight", 1, 256}
	rangeRequest  = limitRange{"request_timeout_ms", 5_000, 120_000}
	rangeIdle     = limitRange{"idle_conn_timeout_ms", 1_000, 300_000}
	rangeAge      = limitRange{"conn_max_age_ms", 10_000, 3_600_000}
	rangeCheck    = limitRange{"check_interval_ms", 10_000, 3_600_000}
)

func (r limitRange) check(v int64) error {
	if v < r.low || v > r.high {
		return invalid("limits.%s must be %d to %d", r.name, r.low, r.high)
	}
	return nil
}

func checkCompression(c string) error {
	if c != "none" && c != "zstd" {
		return invalid("limits.compression must be none or zstd")
	}
	return nil
}

// checkLimits checks a whole set.
func checkLimits(l wire.Limits) error {
	return firstError(
		func() error { return rangeInFlight.check(int64(l.MaxInFlight)) },
		func() error { return rangeRequest.check(l.RequestTimeoutMS) },
		func() error { return rangeIdle.check(l.IdleConnTimeoutMS) },
		func() error { return rangeAge.check(l.ConnMaxAgeMS) },
		func() error { return rangeCheck.check(l.CheckIntervalMS) },
		func() error { return checkCompression(l.Compression) },
	)
}

// createLimits fills what a create did not name with the defaults.
func createLimits(l *wire.Limits) (wire.Limits, error) {
	all := wire.DefaultLimits()
	if l == nil {
		return all, nil
	}
	set(&all.MaxInFlight, l.MaxInFlight)
	set(&all.RequestTimeoutMS, l.RequestTimeoutMS)
	set(&all.IdleConnTimeoutMS, l.IdleConnTimeoutMS)
	set(&all.ConnMaxAgeMS, l.ConnMaxAgeMS)
	set(&all.CheckIntervalMS, l.CheckIntervalMS)
	set(&all.Compression, l.Compression)
	return all, checkLimits(all)
}

func set[T comparable](to *T, v T) {
	var none T
	if v != none {
		*to = v
	}
}

// patchLimits changes what a PATCH named; a limit of 0 or "" is out of its range and refused. named is false for a PATCH of none.
func patchLimits(old wire.Limits, p *wire.PatchLimits) (l wire.Limits, named bool, err error) {
	l = old
	if p == nil {
		return l, false, nil
	}
	named = take(&l.MaxInFlight, p.MaxInFlight) || named
	named = take(&l.RequestTimeoutMS, p.RequestTimeoutMS) || named
	named = take(&l.IdleConnTimeoutMS, p.IdleConnTimeoutMS) || named
	named = take(&l.ConnMaxAgeMS, p.ConnMaxAgeMS) || named
	named = take(&l.CheckIntervalMS, p.CheckIntervalMS) || named
	named = take(&l.Compression, p.Compression) || named
	return l, named, checkLimits(l)
}

func take[T any](to, v *T) bool {
	if v != nil {
		*to = *v
	}
	return v != nil
}
