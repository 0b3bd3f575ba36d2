package metadata

// The kinds of handles in the JSON form.
const (
	kindBytes          = "bytes"
	kindFile           = "file"
	kindRelativeFile   = "relativeFile"
	kindSegment        = "segment"
	kindEmptySegment   = "emptySegment"
	kindKeyGroups      = "keyGroups"
	kindIncremental    = "incremental"
	kindChangelog      = "changelog"
	kindChangelogBytes = "changelogBytes"
	kindChangelogFile  = "changelogFile"
)
