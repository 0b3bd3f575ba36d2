package statestore

import "time"

// Stats is what a store has done since it was opened, and how it is.
type Stats struct {
	Commits       int64 // that made a version
	Recommits     int64 // that found the version there already, with equal content
	Conflicts     int64 // that found it there with other content
	FailedCommits int64 // conflicts included
	RolledBack    int64 // versions that Rollback dropped

	Loads     int64 // of versions from files
	CacheHits int64 // versions that were in memory

	OpenTransactions int // that have not ended

	Snapshots       int64 // written by maintenance, repairs not included
	Repairs         int64 // damaged snapshots that were written again
	DamagedFiles    int   // snapshots that are known to be damaged and were not repaired
	DeletedVersions int64 // by clean-up
	Swept           int64 // temporaries and companions that others had left

	// As the last maintenance found them.
	LatestVersion int64
	LastSnapshot  int64 // highest version with a snapshot, 0 if there is none
	ChainLength   int   // deltas that loading the latest version has to read
	Retained      int   // versions with files

	Snapshotting JobStats // snapshots and repairs
	Cleaning     JobStats // clean-up
}

// JobStats is how one kind of maintenance goes.
type JobStats struct {
	SucceededAt time.Time // the last time, also if there was nothing to do
	FailedAt    time.Time
	Failures    int   // in a row; 0 if the last one succeeded
	LastError   error // of the last one, nil if it succeeded
}

// note takes an outcome into account.
func (j *JobStats) note(now time.Time, err error) {
	if err == nil {
		j.SucceededAt, j.Failures, j.LastError = now, 0, nil
		return
	}
	j.FailedAt, j.LastError = now, err
	j.Failures++
}

// SnapshotLag is how many versions behind the latest the newest snapshot is.
func (s Stats) SnapshotLag() int64 { return s.LatestVersion - s.LastSnapshot }

// Stats returns what the store has done.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.OpenTransactions = len(s.open)
	stats.DamagedFiles = len(s.damaged)
	return stats
}

func (s *Store) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}
