package text

import (
	"fmt"
	"strconv"
	"time"
)

// Size shows a number of bytes in binary units; a negative one is not known.
func Size(bytes int64) string {
	if bytes < 0 {
		return "?"
	}
	if bytes < 1<<10 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	value, unit := float64(bytes), 0
	for ; value >= 1<<10 && unit < 6; unit++ {
		value /= 1 << 10
	}
	// What would be rounded up to 1024 is one of the next unit.
	if value >= 1023.95 && unit < 6 {
		value, unit = value/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[unit-1])
}

// Age shows a time span by its two largest units; spans below zero, of a clock that is behind, are zero.
func Age(d time.Duration) string {
	seconds := int64(max(d, 0) / time.Second)
	minutes, hours, days := seconds/60, seconds/3600, seconds/86400
	switch {
	case minutes == 0:
		return fmt.Sprintf("%ds", seconds)
	case hours == 0:
		return twoUnits(minutes, 'm', seconds%60, 's')
	case days == 0:
		return twoUnits(hours, 'h', minutes%60, 'm')
	}
	return twoUnits(days, 'd', hours%24, 'h')
}

func twoUnits(large int64, largeUnit rune, small int64, smallUnit rune) string {
	if small == 0 {
		return fmt.Sprintf("%d%c", large, largeUnit)
	}
	return fmt.Sprintf("%d%c %d%c", large, largeUnit, small, smallUnit)
}

// Count shows a number with its noun, in the plural where it must be.
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case len(noun) > 1 && noun[len(noun)-1] == 'y':
		return fmt.Sprintf("%d %sies", n, noun[:len(noun)-1])
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Percent shows a share of a whole, as a whole number.
func Percent(part, whole int64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}

// recorded shows a number of things, the sum of their sizes, and how many of them have no size that counts.
func recorded(n int, noun string, bytes int64, unknown int) string {
	text := Count(n, noun) + ", " + Size(bytes)
	if unknown > 0 {
		text += fmt.Sprintf(", %d without recorded size", unknown)
	}
	return text
}
