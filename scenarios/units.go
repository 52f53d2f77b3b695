package scenarios

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// unit is a scalar that is written with its unit.
type unit interface {
	set(text string) error // the error says what is allowed
	String() string
}

// Duration is a time with its unit, such as 250ms, 5s, 2m or 1h.
type Duration time.Duration

func (d *Duration) set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return fmt.Errorf("wants a time with its unit, such as 250ms, 5s or 2m")
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalYAML writes the form that Load reads.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// D is the standard library's form.
func (d Duration) D() time.Duration { return time.Duration(d) }

// Shift is a signed time with its unit, such as +25h, -2h or +400d.
type Shift time.Duration

func (s *Shift) set(text string) error {
	wants := errors.New("wants a sign and a time with its unit, such as +25h, -2h or +400d")
	if text == "" || text[0] != '+' && text[0] != '-' {
		return wants
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n > 36500 || n < -36500 {
			return wants
		}
		*s = Shift(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return wants
	}
	*s = Shift(v)
	return nil
}

func (s Shift) String() string {
	if s < 0 {
		return time.Duration(s).String()
	}
	return "+" + time.Duration(s).String()
}

// MarshalYAML writes the form that Load reads.
func (s Shift) MarshalYAML() (any, error) { return s.String(), nil }

// D is the standard library's form.
func (s Shift) D() time.Duration { return time.Duration(s) }

// Size is a number of bytes with its unit: B, KiB or MiB.
type Size int64

func (s *Size) set(text string) error {
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"B", 1}} {
		if number, ok := strings.CutSuffix(text, u.suffix); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 40)
			if err == nil && n >= 0 {
				*s = Size(n * u.factor)
				return nil
			}
		}
	}
	return fmt.Errorf("wants bytes with their unit, such as 200B, 64KiB or 1MiB")
}

func (s Size) String() string {
	switch {
	case s >= 1<<20 && s%(1<<20) == 0:
		return strconv.FormatInt(int64(s>>20), 10) + "MiB"
	case s >= 1<<10 && s%(1<<10) == 0:
		return strconv.FormatInt(int64(s>>10), 10) + "KiB"
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalYAML writes the form that Load reads.
func (s Size) MarshalYAML() (any, error) { return s.String(), nil }

// Sizes is a range of sizes, both ends included: 200B..4KiB, or one size.
type Sizes struct{ Min, Max Size }

func (r *Sizes) set(text string) error {
	low, high, isRange := strings.Cut(text, "..")
	if !isRange {
		high = low
	}
	var out Sizes
	if out.Min.set(low) != nil || out.Max.set(high) != nil || out.Min > out.Max || out.Min < 1 {
		return fmt.Errorf("wants a size or a range from small to large, such as 1KiB or 200B..4KiB, 1B at least")
	}
	*r = out
	return nil
}

func (r Sizes) String() string {
	if r.Min == r.Max {
		return r.Min.String()
	}
	return r.Min.String() + ".." + r.Max.String()
}

// MarshalYAML writes the form that Load reads.
func (r Sizes) MarshalYAML() (any, error) { return r.String(), nil }

// Rate is records per second: 2000/s.
type Rate int

func (r *Rate) set(text string) error {
	number, ok := strings.CutSuffix(text, "/s")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if !ok || err != nil || n < 1 || n > 1_000_000 {
		return fmt.Errorf("wants records per second, such as 2000/s, 1/s to 1000000/s")
	}
	*r = Rate(n)
	return nil
}

func (r Rate) String() string { return strconv.Itoa(int(r)) + "/s" }

// MarshalYAML writes the form that Load reads.
func (r Rate) MarshalYAML() (any, error) { return r.String(), nil }

// Percent is a share of the records: 60%.
type Percent int

func (p *Percent) set(text string) error {
	number, ok := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if !ok || err != nil || n < 0 || n > 100 {
		return fmt.Errorf("wants a share such as 60%%, 0%% to 100%%")
	}
	*p = Percent(n)
	return nil
}

func (p Percent) String() string { return strconv.Itoa(int(p)) + "%" }

// MarshalYAML writes the form that Load reads.
func (p Percent) MarshalYAML() (any, error) { return p.String(), nil }

// ByteRate is bytes per second: 64KiB/s.
type ByteRate Size

func (b *ByteRate) set(text string) error {
	number, ok := strings.CutSuffix(text, "/s")
	var s Size
	if !ok || s.set(number) != nil || s < 1<<10 {
		return fmt.Errorf("wants bytes per second, such as 64KiB/s, 1KiB/s at least")
	}
	*b = ByteRate(s)
	return nil
}

func (b ByteRate) String() string { return Size(b).String() + "/s" }

// MarshalYAML writes the form that Load reads.
func (b ByteRate) MarshalYAML() (any, error) { return b.String(), nil }
