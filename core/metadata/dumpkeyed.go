package metadata

func (d *flinkDump) keyed(key string, h KeyedHandle) {
	if h == nil {
		d.null(key)
		return
	}
	d.object(key, func() {
		switch h := h.(type) {
		case *KeyGroupsHandle:
			d.keyGroups(h)
			if !h.Savepoint {
				d.id(h.Layout, LayoutV1, h.ID)
			}
		case *IncrementalHandle:
			d.incremental(h)
		case *ChangelogHandle:
			d.changelog(h)
		case *ChangelogBytesHandle:
			d.changelogBytes(h)
		case *ChangelogFileHandle:
			d.changelogFile(h)
		}
	})
}

func (d *flinkDump) incremental(h *IncrementalHandle) {
	d.text("type", "incremental")
	d.number("checkpointId", h.CheckpointID)
	d.text("backendId", flinkBackendID(h.BackendID))
	d.keyGroupRange(h.Range)
	d.number("checkpointedSize", h.CheckpointedSize())
	d.stream("meta", h.Meta)
	d.namedFiles("shared", h.Shared)
	d.namedFiles("private", h.Private)
	d.id(h.Layout, LayoutV1, h.ID)
}

func (d *flinkDump) namedFiles(key string, files []NamedFile) {
	d.list(key, func() {
		for i := range files {
			d.object("", func() {
				d.text("localPath", files[i].LocalPath)
				d.stream("handle", files[i].Handle)
			})
		}
	})
}

func (d *flinkDump) changelog(h *ChangelogHandle) {
	list := func(key string, parts []KeyedHandle) {
		d.list(key, func() {
			for _, part := range parts {
				d.keyed("", part)
			}
		})
	}
	d.text("type", "changelog")
	d.keyGroupRange(h.Range)
	d.number("checkpointedSize", h.PersistedSize)
	list("materialized", h.Materialized)
	list("nonMaterialized", h.Changes)
	d.number("materializationId", h.MaterializationID)
	d.number("checkpointId", h.CheckpointID)
	d.id(h.Layout, Layout114, h.ID)
}

func (d *flinkDump) changelogBytes(h *ChangelogBytesHandle) {
	d.text("type", "changelogBytes")
	d.keyGroupRange(h.Range)
	d.number("from", h.From)
	d.number("to", h.To)
	d.list("changes", func() {
		for i := range h.Changes {
			d.object("", func() {
				d.number("keyGroup", int64(h.Changes[i].KeyGroup))
				d.bytes("data", h.Changes[i].Data)
			})
		}
	})
	d.id(h.Layout, Layout114, h.ID)
}

func (d *flinkDump) changelogFile(h *ChangelogFileHandle) {
	d.text("type", "changelogFile")
	d.keyGroupRange(h.Range)
	d.list("handles", func() {
		for i := range h.Parts {
			d.object("", func() {
				d.number("offset", h.Parts[i].Offset)
				d.stream("handle", h.Parts[i].Handle)
			})
		}
	})
	d.number("size", h.Size)
	d.number("checkpointedSize", h.PersistedSize)
	d.text("storageIdentifier", h.Storage)
	d.id(h.Layout, Layout114, h.ID)
}
