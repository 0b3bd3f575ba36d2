package conf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// values reads typed values and collects what is wrong with them.
type values struct {
	*Conf
	problems []error
}

func (v *values) wrong(key, value, what string) {
	v.problems = append(v.problems, invalid("%s is %q: %s", key, value, what))
}

// text returns a value, or the fallback if there is none or an empty one.
func (v *values) text(key, fallback string) string {
	if s, _ := v.Get(key); s != "" {
		return s
	}
	return fallback
}

// list splits a value at commas and drops what is empty.
func (v *values) list(key string) []string {
	s, _ := v.Get(key)
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
	if len(parts) == 0 {
		return nil
	}
	return parts
}

// flag is true or false; what is neither is, as in Hadoop, the fallback.
func (v *values) flag(key string, fallback bool) bool {
	switch s, _ := v.Get(key); strings.ToLower(s) {
	case "true":
		return true
	case "false":
		return false
	}
	return fallback
}

// number is an integer from least to most, decimal or with 0x.
func (v *values) number(key string, fallback, least, most int64) int64 {
	s := v.text(key, "")
	if s == "" {
		return fallback
	}
	n, err := parseNumber(s)
	if err != nil || n < least || n > most {
		v.wrong(key, s, fmt.Sprintf("it must be a number from %d to %d", least, most))
		return fallback
	}
	return n
}

func parseNumber(s string) (int64, error) {
	digits, base := s, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		digits, base = hex, 16
	}
	return strconv.ParseInt(digits, base, 64)
}

// size is a number of bytes with an optional suffix k, m, g, t, p or e, of powers of 1024.
func (v *values) size(key string, fallback, least, most int64) int64 {
	s := v.text(key, "")
	if s == "" {
		return fallback
	}
	n, err := parseSize(s)
	if err != nil || n < least || n > most {
		v.wrong(key, s, fmt.Sprintf("it must be a size from %d to %d, such as 128m", least, most))
		return fallback
	}
	return n
}

func parseSize(s string) (int64, error) {
	lower := strings.ToLower(s)
	at := -1
	if lower != "" && !strings.HasPrefix(lower, "0x") {
		at = strings.IndexByte("kmgtpe", lower[len(lower)-1])
	}
	if at < 0 {
		return parseNumber(lower)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(lower[:len(lower)-1]), 10, 64)
	if err != nil {
		return 0, err
	}
	shift := 10 * (at + 1)
	if n > math.MaxInt64>>shift || n < math.MinInt64>>shift {
		return 0, strconv.ErrRange
	}
	return n << shift, nil
}

// duration is a number with an optional suffix ns, us, ms, s, m, h or d; without one it counts in units. It is not negative.
func (v *values) duration(key string, unit, fallback time.Duration) time.Duration {
	s := v.text(key, "")
	if s == "" {
		return fallback
	}
	d, err := parseDuration(s, unit)
	if err != nil || d < 0 {
		v.wrong(key, s, "it must be a duration such as 30s")
		return fallback
	}
	return d
}

// durationUnits stand so that none is hidden by a shorter one before it.
var durationUnits = []struct {
	suffix string
	unit   time.Duration
}{
	{"ns", time.Nanosecond},
	{"us", time.Microsecond},
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
}

func parseDuration(s string, unit time.Duration) (time.Duration, error) {
	s = strings.ToLower(s)
	for _, u := range durationUnits {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = strings.TrimSpace(rest), u.unit
			break
		}
	}
	n, err := parseNumber(s)
	if err != nil {
		return 0, err
	}
	if n > int64(math.MaxInt64/unit) || n < int64(math.MinInt64/unit) {
		return 0, strconv.ErrRange
	}
	return time.Duration(n) * unit, nil
}
