package metadata

const (
	minKeyed      = 1 + 4 + 4 + 1     // key groups of an empty range in an empty segment
	minNoKeyed    = 1                 // a handle that is not there
	minNamedFile  = 2 + 1             // without a name, in an empty segment
	minChange     = 4 + 4             // without bytes
	minChangePart = 8 + 1             // in an empty segment
	minChanges    = 1 + 4 + 4 + 4 + 8 // a file of changes without parts, as Flink 1.14 wrote it
)

// keyed reads a keyed handle, nil for none.
func (p *parser) keyed() KeyedHandle {
	at := p.pos()
	tag := p.u8()
	if tag == tagNone || p.err != nil || !p.enter() {
		return nil
	}
	defer p.leave()
	as114 := p.changelog114
	if p.private && tag >= tag114 {
		tag -= tag114
		as114 = true
	}
	if (p.changelog114 && tag > tagChangelogFileV1) || (p.channels111 && tag > tagIncrementalV1) {
		p.fail(corrupt(at, "the Flink whose layout this is had no tag %d", tag))
		return nil
	}
	switch tag {
	case tagKeyGroupsV1, tagKeyGroups, tagSavepointKeyGroups:
		return p.keyGroups(tag)
	case tagIncrementalV1, tagIncremental:
		return p.incremental(tag)
	case tagChangelogV1, tagChangelog:
		return p.changelog(p.changelogLayout(tag, as114))
	case tagChangelogBytes:
		return p.changelogBytes(p.changelogLayout(tag, as114))
	case tagChangelogFileV1, tagChangelogFile:
		return p.changelogFile(p.changelogLayout(tag, as114))
	}
	p.fail(corrupt(at, "%d is not the tag of a keyed handle", tag))
	return nil
}

// changelogLayout tells how a changelog handle is laid out, and takes note if Flink 1.14 used its tag for another layout.
func (p *parser) changelogLayout(tag byte, as114 bool) Layout {
	if tag > tagChangelogFileV1 {
		return LayoutCurrent
	}
	p.sawChangelog = true
	switch {
	case as114:
		return Layout114
	case tag == tagChangelogBytes:
		return LayoutCurrent
	}
	return LayoutV1
}

// keyGroupRange reads a range; the number of key groups must be followed by at least perGroup bytes for each of them.
func (p *parser) keyGroupRange(perGroup int) KeyGroupRange {
	at := p.pos()
	start := p.i32()
	count := p.claim(at+4, int64(p.i32()), perGroup)
	r := KeyGroupRange{Start: start, Count: int32(count)}
	if start < 0 || int(start)+count > 1<<31-1 {
		p.fail(corrupt(at, "there are no key groups %d…%d", start, r.End()-1))
	}
	return r
}

func (p *parser) keyGroups(tag byte) *KeyGroupsHandle {
	h := p.slabs.keyGroups.one()
	p.keyGroupsBody(h)
	switch tag {
	case tagKeyGroups:
		h.ID = p.text()
	case tagKeyGroupsV1:
		h.Layout = LayoutV1
	case tagSavepointKeyGroups:
		h.Savepoint = true
	}
	return h
}

// keyGroupsBody is what all handles of key groups have in common.
func (p *parser) keyGroupsBody(h *KeyGroupsHandle) {
	h.Range = p.keyGroupRange(minOffset)
	h.Offsets = p.slabs.longs.take(int(h.Range.Count))
	p.longs(h.Offsets)
	if p.err == nil {
		h.Delegate = p.someStream("delegate")
	}
}

func (p *parser) incremental(tag byte) *IncrementalHandle {
	h := p.slabs.incrementals.one()
	h.CheckpointID = p.i64()
	h.BackendID = p.text()
	h.Range = p.keyGroupRange(0)
	h.PersistedSize = unknownSize
	if tag == tagIncrementalV1 {
		h.Layout = LayoutV1
	} else {
		h.PersistedSize = p.i64()
	}
	if p.err != nil {
		return h
	}
	h.Meta = p.someStream("meta")
	h.Shared = p.namedFiles("shared")
	h.Private = p.namedFiles("private")
	if tag != tagIncrementalV1 && p.err == nil {
		h.ID = p.text()
	}
	return h
}

func (p *parser) namedFiles(name string) []NamedFile {
	if p.err != nil {
		return nil
	}
	n := p.length(minNamedFile)
	files := p.slabs.files.take(n)
	p.reserved += n * minNamedFile
	for i := range files {
		p.reserved -= minNamedFile
		files[i].LocalPath = p.name()
		files[i].Handle = p.someStream("handle")
		if p.failedAt(name, i) {
			return nil
		}
	}
	p.failedIn(name)
	return files
}

func (p *parser) changelog(layout Layout) *ChangelogHandle {
	h := p.slabs.changelogs.one()
	h.Layout = layout
	at := p.pos()
	h.Range = p.keyGroupRange(0)
	if h.Range.Count == 0 {
		p.fail(corrupt(at, "a changelog of no key groups"))
	}
	h.PersistedSize = unknownSize
	if layout != Layout114 {
		h.PersistedSize = p.i64()
	}
	if p.err != nil {
		return h
	}
	h.Materialized = p.materialized()
	if p.failedIn("materialized") {
		return h
	}
	h.Changes = p.changes()
	if p.failedIn("changes") || layout == Layout114 {
		return h
	}
	h.MaterializationID = p.i64()
	h.CheckpointID = h.MaterializationID
	if layout == LayoutCurrent {
		h.CheckpointID = p.i64()
	}
	h.ID = p.text()
	return h
}

// materialized leaves out handles that are not there, as Flink does.
func (p *parser) materialized() []KeyedHandle {
	left := p.rest() - p.reserved
	n := p.length(minNoKeyed)
	list := p.slabs.keyed.take(max(0, min(n, left/minKeyed)))[:0]
	p.reserved += n * minNoKeyed
	for i := range n {
		p.reserved -= minNoKeyed
		h := p.keyed()
		if p.err != nil {
			p.err.in(indexed(i))
			return nil
		}
		if h != nil {
			list = append(list, h)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

func (p *parser) changes() []KeyedHandle {
	n := p.length(minChanges)
	list := p.slabs.keyed.take(n)
	p.reserved += n * minChanges
	for i := range list {
		p.reserved -= minChanges
		at := p.pos()
		list[i] = p.keyed()
		if p.err == nil && !isChange(list[i]) {
			p.fail(corrupt(at, "a list of changes holds something else"))
		}
		if p.err != nil {
			p.err.in(indexed(i))
			return nil
		}
	}
	return list
}

func isChange(h KeyedHandle) bool {
	switch h.(type) {
	case *ChangelogBytesHandle, *ChangelogFileHandle:
		return true
	}
	return false
}

func (p *parser) changelogBytes(layout Layout) *ChangelogBytesHandle {
	h := p.slabs.changeBytes.one()
	h.Layout = layout
	h.Range = p.keyGroupRange(0)
	at := p.pos()
	h.From = p.i64()
	h.To = p.i64()
	if h.From < 0 || h.To < 0 {
		p.fail(corrupt(at, "there are no sequence numbers %d to %d", h.From, h.To))
	}
	n := p.length(minChange)
	h.Changes = p.slabs.changes.take(n)
	p.reserved += n * minChange
	for i := range h.Changes {
		p.reserved -= minChange
		at := p.pos()
		h.Changes[i].KeyGroup = p.i32()
		if h.Changes[i].KeyGroup < MetadataKeyGroup {
			p.fail(corrupt(at, "there is no key group %d", h.Changes[i].KeyGroup))
		}
		h.Changes[i].Data = p.blob()
		if p.failedAt("changes", i) {
			return h
		}
	}
	if p.err == nil && layout != Layout114 {
		h.ID = p.text()
	}
	return h
}

func (p *parser) changelogFile(layout Layout) *ChangelogFileHandle {
	h := p.slabs.changeFiles.one()
	h.Layout = layout
	h.Range = p.keyGroupRange(0)
	n := p.length(minChangePart)
	h.Parts = p.slabs.changeParts.take(n)
	p.reserved += n * minChangePart
	for i := range h.Parts {
		p.reserved -= minChangePart
		h.Parts[i].Offset = p.i64()
		h.Parts[i].Handle = p.someStream("handle")
		if p.failedAt("parts", i) {
			return h
		}
	}
	if p.err != nil {
		return h
	}
	h.Size = p.i64()
	h.PersistedSize = unknownSize
	h.Storage = FilesystemStorage
	if layout != Layout114 {
		h.PersistedSize = p.i64()
		h.ID = p.text()
	}
	if layout == LayoutCurrent {
		h.Storage = p.name()
	}
	return h
}
