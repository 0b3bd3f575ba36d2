package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Storage is the checkpoint storage of one job: what every worker and the coordinator share. It holds settings only and
// makes no file-system call of its own accord; all methods are safe for concurrent use.
//
// Workers use ResolveLocation and CreateTaskOwnedStream. What changes the job directory needs an [Owner], which Claim makes.
type Storage struct {
	fsys    FileSystem
	base    string
	job     JobID
	jobDir  string
	opts    Options
	buffers *bufferPool
}

// NewStorage checks the settings, all problems at once, and that the file system can keep its promises: the asked
// durability, and Rename with NoReplace for files. It does no I/O. base is a name on fsys, which may hold an entropy marker.
func NewStorage(fsys FileSystem, base string, job JobID, opts Options) (*Storage, error) {
	problems := append(capabilityProblems(fsys, base, opts), opts.Validate(), CheckName("open", "/", base))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	opts = opts.withDefaults(fsys)
	s := &Storage{fsys: fsys, base: base, job: job, jobDir: base, opts: opts, buffers: newBufferPool(opts.WriteBuffer)}
	if !opts.NoJobDir {
		s.jobDir = join(base, job.String())
	}
	return s, nil
}

// capabilityProblems lists what a file system lacks for files to be kept in base as the options ask.
func capabilityProblems(fsys FileSystem, base string, opts Options) []error {
	var problems []error
	lacks := func(format string, args ...any) {
		problems = append(problems, &fs.PathError{Op: "open", Path: base, Err: fmt.Errorf("%w: "+format, append([]any{errors.ErrUnsupported}, args...)...)})
	}
	capabilities := fsys.Capabilities()
	if _, ok := capabilities.Resolve(opts.Durability); !ok {
		lacks("durability %v; %s offers %v", opts.Durability, fsys.URI(), capabilities.Durabilities)
	}
	if !capabilities.NoReplaceFiles {
		lacks("%s cannot rename without replacing, so a checkpoint cannot be published safely", fsys.URI())
	}
	if opts.MinReplicas > 1 && !capabilities.Replicas {
		lacks("Options.MinReplicas is %d; %s has no replicas", opts.MinReplicas, fsys.URI())
	}
	return problems
}

// FileSystem returns the file system of the job directory.
func (s *Storage) FileSystem() FileSystem { return s.fsys }

// Opener returns the Opener of the options.
func (s *Storage) Opener() Opener { return s.opts.Opener }

// JobID returns the job's id.
func (s *Storage) JobID() JobID { return s.job }

// JobDir is the name of the job directory; an entropy marker of the base is removed.
func (s *Storage) JobDir() string { return removeEntropy(s.fsys, s.jobDir) }

// Durability is what every file of the storage gets.
func (s *Storage) Durability() Durability {
	d, _ := s.fsys.Capabilities().Resolve(s.opts.Durability)
	return d
}

func (s *Storage) createOptions() CreateOptions {
	return CreateOptions{Durability: s.opts.Durability, MinReplicas: s.opts.MinReplicas}
}

// ResolveLocation returns where the state of a checkpoint goes: the default reference means chk-<id> of this storage, any
// other the directory that it names, on that directory's own file system. It makes no file-system call; the directory must
// have been made by the owner. A negative id is fs.ErrInvalid.
func (s *Storage) ResolveLocation(ctx context.Context, id int64, reference LocationReference) (*Location, error) {
	if id < 0 {
		return nil, fmt.Errorf("%w: checkpoint id %d is negative", fs.ErrInvalid, id)
	}
	if reference.IsDefault() {
		return s.checkpointLocation(id), nil
	}
	qualified, err := reference.Decode()
	if err != nil {
		return nil, err
	}
	fsys, name, err := s.opts.Opener(ctx, qualified)
	if err != nil {
		return nil, err
	}
	return s.savepointLocation(fsys, name), nil
}

// CreateTaskOwnedStream opens a stream in the job's taskowned directory. Its handles are absolute, and no checkpoint
// deletes its file: the task does.
func (s *Storage) CreateTaskOwnedStream(ctx context.Context) *StateStream {
	return newStateStream(ctx, s.streamConfig(s.fsys, join(s.jobDir, TaskOwnedDirName), false))
}

func (s *Storage) checkpointLocation(id int64) *Location {
	dir := join(s.jobDir, CheckpointDirName(id))
	return &Location{
		fsys: s.fsys, dir: dir, sharedDir: join(s.jobDir, SharedDirName), taskOwnedDir: join(s.jobDir, TaskOwnedDirName),
		exclusive: s.streamConfig(s.fsys, dir, true),
		shared:    s.streamConfig(s.fsys, join(s.jobDir, SharedDirName), false),
	}
}

// savepointLocation puts state of every scope into the one directory. Shared state too gets relative handles there, other
// than in Flink: nothing else refers to it, and the savepoint stays movable.
func (s *Storage) savepointLocation(fsys FileSystem, dir string) *Location {
	config := s.streamConfig(fsys, dir, true)
	return &Location{
		fsys: fsys, dir: dir, sharedDir: dir, taskOwnedDir: dir, exclusive: config, shared: config,
		reference: EncodeReference(Qualify(fsys.URI(), dir)),
	}
}

func (s *Storage) streamConfig(fsys FileSystem, dir string, relative bool) *streamConfig {
	return &streamConfig{
		fsys: fsys, dir: dir, qualified: Qualify(fsys.URI(), dir),
		relative:  relative && !hasEntropy(fsys, dir),
		threshold: s.opts.InlineThreshold, buffers: s.buffers, create: s.createOptions(), newUUID: s.opts.NewUUID,
	}
}

// Location is where the state of one checkpoint or savepoint goes. It is safe for concurrent use.
type Location struct {
	fsys         FileSystem
	dir          string
	sharedDir    string
	taskOwnedDir string
	reference    LocationReference
	exclusive    *streamConfig
	shared       *streamConfig
}

// CreateStateStream opens a stream for one state. It makes no file-system call; ctx governs the stream.
func (l *Location) CreateStateStream(ctx context.Context, scope Scope) *StateStream {
	if scope == Shared {
		return newStateStream(ctx, l.shared)
	}
	return newStateStream(ctx, l.exclusive)
}

// FileSystem returns the file system of the location.
func (l *Location) FileSystem() FileSystem { return l.fsys }

// CheckpointDir is the name of the directory of exclusive state; an entropy marker is kept.
func (l *Location) CheckpointDir() string { return l.dir }

// SharedDir is the name of the directory of shared state.
func (l *Location) SharedDir() string { return l.sharedDir }

// TaskOwnedDir is the name of the directory of task-owned state.
func (l *Location) TaskOwnedDir() string { return l.taskOwnedDir }

// MetadataName is the name that `_metadata` is published under; an entropy marker is removed.
func (l *Location) MetadataName() string { return join(l.metadataDir(), MetadataName) }

// Reference is what a task needs to resolve the location.
func (l *Location) Reference() LocationReference { return l.reference }

// String names the location for messages.
func (l *Location) String() string { return Qualify(l.fsys.URI(), l.metadataDir()) }

func (l *Location) metadataDir() string { return removeEntropy(l.fsys, l.dir) }
