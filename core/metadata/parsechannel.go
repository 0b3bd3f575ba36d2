package metadata

// channels reads one of the two lists of data in flight; the tags are those of the kind that may stand in it.
func (p *parser) channels(name string, single, merged byte) []ChannelHandle {
	size := minChannel
	switch {
	case p.channels111:
		size = minChannel111
	case p.version >= firstWithMergedChannels:
		size = minTaggedChannel
	}
	at := p.pos()
	count := p.i32()
	if count != 0 {
		p.sawChannels = true
	}
	n := p.claim(at, int64(count), size)
	list := p.slabs.channels.take(n)
	p.reserved += n * size
	for i := range list {
		p.reserved -= size
		p.channel(&list[i], single, merged)
		if p.failedAt(name, i) {
			return nil
		}
	}
	p.failedIn(name)
	return list
}

func (p *parser) channel(h *ChannelHandle, single, merged byte) {
	if p.version >= firstWithMergedChannels {
		at := p.pos()
		switch tag := p.u8(); tag {
		case single:
		case merged:
			p.mergedChannel(h)
			return
		default:
			p.fail(corrupt(at, "%d is not the tag of a channel handle of this list", tag))
			return
		}
	}
	h.Subtask = int32(p.subtask)
	if !p.channels111 {
		h.Subtask = p.i32()
	}
	h.Channels = p.slabs.channelParts.take(1)
	c := &h.Channels[0]
	c.Group = p.i32()
	c.Index = p.i32()
	c.Offsets = p.offsets()
	h.Size = p.i64()
	c.Size = h.Size
	h.Delegate = p.someStream("delegate")
}

func (p *parser) mergedChannel(h *ChannelHandle) {
	h.Merged = true
	h.Subtask = p.i32()
	h.Size = p.i64()
	h.Delegate = p.someStream("delegate")
	at := p.pos()
	announced := p.length(1)
	end := p.pos() + announced
	n := p.length(minMergedChannel)
	h.Channels = p.slabs.channelParts.take(n)
	p.reserved += n * minMergedChannel
	for i := range h.Channels {
		p.reserved -= minMergedChannel
		c := &h.Channels[i]
		c.Group = p.i32()
		c.Index = p.i32()
		c.Size = p.i64()
		c.Offsets = p.offsets()
		if p.failedAt("channels", i) {
			return
		}
	}
	if p.err == nil && p.pos() != end {
		p.fail(corrupt(at, "%d bytes of channels are announced, there are %d", announced, announced+p.pos()-end))
	}
}
