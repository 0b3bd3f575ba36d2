package coordinator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// The binary form of messages between the coordinator and its tasks. All integers are big-endian.
//
//	offset
//	0    4 bytes  magic  'H' 'C' 'M' 'G'
//	4    u8       what: 1 trigger, 2 acknowledgement, 3 decline, 4 notice
//	5    u8       version, 1
//	6    i64      checkpoint id
//	14   u64      epoch
//	22   body
//	-4   u32      CRC32C of everything before
//
// The bodies:
//
//	trigger          u8 kind, u8 flags (1 stop), i64 base, i64 timestamp in milliseconds since 1970, u32 n, n bytes reference
//	acknowledgement  16 bytes operator id, u32 subtask, u8 flags (1 finished, 2 with state), task snapshot of package metadata
//	decline          16 bytes operator id, u32 subtask, u16 n, n bytes reason
//	notice           u8 kind, u8 news (0 committed, 1 aborted, 2 subsumed)
const (
	messageMagic   = "HCMG"
	messageVersion = 1

	whatTrigger = 1
	whatAck     = 2
	whatDecline = 3
	whatNotice  = 4

	flagStop     = 1
	flagFinished = 1
	flagState    = 2

	messageHead = len(messageMagic) + 2
	messageTail = 4
	// maxReference is far above the longest path of any file system.
	maxReference = 64 << 10
)

// MarshalBinary implements encoding.BinaryMarshaler. The timestamp is kept to the millisecond.
func (t Trigger) MarshalBinary() ([]byte, error) {
	if t.Kind > Savepoint || len(t.Reference) > maxReference {
		return nil, fmt.Errorf("%w: trigger of kind %d with a reference of %d bytes", fs.ErrInvalid, t.Kind, len(t.Reference))
	}
	b := beginMessage(whatTrigger, t.CheckpointID, t.Epoch)
	b = append(b, byte(t.Kind), flag(t.Stop, flagStop))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Base))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Timestamp.UnixMilli()))
	b = binary.BigEndian.AppendUint32(b, uint32(len(t.Reference)))
	return endMessage(append(b, t.Reference...)), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. The error is core.ErrCorrupt or core.ErrUnsupportedVersion.
func (t *Trigger) UnmarshalBinary(data []byte) error {
	m, err := openMessage(data, whatTrigger)
	if err != nil {
		return err
	}
	var got Trigger
	got.CheckpointID, got.Epoch = int64(m.u64()), m.u64()
	got.Kind = Kind(m.u8())
	flags := m.u8()
	got.Stop = flags&flagStop != 0
	got.Base = int64(m.u64())
	got.Timestamp = time.UnixMilli(int64(m.u64())).UTC()
	got.Reference = m.bytes(int(m.u32()), maxReference)
	if err := m.close(got.Kind <= Savepoint && flags&^flagStop == 0); err != nil {
		return err
	}
	*t = got
	return nil
}

// MarshalBinary implements encoding.BinaryMarshaler. The error is fs.ErrInvalid for a state that cannot be part of a
// checkpoint.
func (a Ack) MarshalBinary() ([]byte, error) {
	b, err := appendTask(beginMessage(whatAck, a.CheckpointID, a.Epoch), a.Task)
	if err != nil {
		return nil, err
	}
	b = append(b, flag(a.Finished, flagFinished)|flag(a.State != nil, flagState))
	if a.State != nil {
		if b, err = metadata.AppendSubtask(b, a.State); err != nil {
			return nil, err
		}
	}
	return endMessage(b), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. The error is core.ErrCorrupt or core.ErrUnsupportedVersion. The memory
// it takes is bounded by a small multiple of the data.
func (a *Ack) UnmarshalBinary(data []byte) error {
	m, err := openMessage(data, whatAck)
	if err != nil {
		return err
	}
	var got Ack
	got.CheckpointID, got.Epoch = int64(m.u64()), m.u64()
	got.Task = m.task()
	flags := m.u8()
	got.Finished = flags&flagFinished != 0
	var state []byte
	if flags&flagState != 0 {
		state = m.rest()
	}
	if err := m.close(flags&^(flagFinished|flagState) == 0); err != nil {
		return err
	}
	if flags&flagState != 0 {
		if got.State, err = metadata.ParseSubtask(state); err != nil {
			return err
		}
	}
	*a = got
	return nil
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (d Decline) MarshalBinary() ([]byte, error) {
	b, err := appendTask(beginMessage(whatDecline, d.CheckpointID, d.Epoch), d.Task)
	if err != nil {
		return nil, err
	}
	reason := d.Reason
	if len(reason) > MaxReason {
		reason = strings.ToValidUTF8(reason[:MaxReason], "")
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(reason)))
	return endMessage(append(b, reason...)), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. The error is core.ErrCorrupt or core.ErrUnsupportedVersion.
func (d *Decline) UnmarshalBinary(data []byte) error {
	m, err := openMessage(data, whatDecline)
	if err != nil {
		return err
	}
	var got Decline
	got.CheckpointID, got.Epoch = int64(m.u64()), m.u64()
	got.Task = m.task()
	got.Reason = string(m.bytes(int(m.u16()), MaxReason))
	if err := m.close(true); err != nil {
		return err
	}
	*d = got
	return nil
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

func beginMessage(what byte, id int64, epoch uint64) []byte {
	b := append(make([]byte, 0, 128), messageMagic...)
	b = append(b, what, messageVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	return binary.BigEndian.AppendUint64(b, epoch)
}

func endMessage(b []byte) []byte { return binary.BigEndian.AppendUint32(b, core.CRC32C(b)) }

func appendTask(b []byte, task Task) ([]byte, error) {
	if task.Subtask < 0 || task.Subtask > math.MaxInt32 {
		return nil, fmt.Errorf("%w: task %v", fs.ErrInvalid, task)
	}
	b = append(b, task.Operator[:]...)
	return binary.BigEndian.AppendUint32(b, uint32(task.Subtask)), nil
}

// message reads the parts of a message. The first failure sticks; what is read after it is zero.
type message struct {
	data   []byte
	failed bool
}

// openMessage checks the frame of a message.
func openMessage(data []byte, what byte) (*message, error) {
	end := len(data) - messageTail
	switch {
	case end < messageHead || string(data[:len(messageMagic)]) != messageMagic:
		return nil, fmt.Errorf("%w: this is not a message between coordinator and task", core.ErrCorrupt)
	case data[5] != messageVersion:
		return nil, fmt.Errorf("%w: version %d of a message", core.ErrUnsupportedVersion, data[5])
	case core.CRC32C(data[:end]) != binary.BigEndian.Uint32(data[end:]):
		return nil, fmt.Errorf("%w: the checksum of the message is wrong", core.ErrCorrupt)
	case data[4] != what:
		return nil, fmt.Errorf("%w: this is another message: type %d instead of %d", core.ErrCorrupt, data[4], what)
	}
	return &message{data: data[messageHead:end]}, nil
}

func (m *message) take(n int) []byte {
	if m.failed || n < 0 || n > len(m.data) {
		m.failed = true
		return nil
	}
	taken := m.data[:n]
	m.data = m.data[n:]
	return taken
}

func (m *message) u8() byte {
	if b := m.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (m *message) u16() uint16 {
	if b := m.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (m *message) u32() uint32 {
	if b := m.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (m *message) u64() uint64 {
	if b := m.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// bytes returns a copy of the next n bytes, nil for none.
func (m *message) bytes(n, limit int) []byte {
	if n > limit {
		m.failed = true
	}
	if n == 0 {
		return nil
	}
	return bytes.Clone(m.take(n))
}

func (m *message) task() Task {
	var task Task
	copy(task.Operator[:], m.take(len(task.Operator)))
	subtask := m.u32()
	if subtask > math.MaxInt32 {
		m.failed = true
	}
	task.Subtask = int(subtask)
	return task
}

func (m *message) rest() []byte { return m.take(len(m.data)) }

// close reports what is wrong with the message as a whole.
func (m *message) close(valid bool) error {
	switch {
	case m.failed:
		return fmt.Errorf("%w: the message is cut short", core.ErrCorrupt)
	case !valid:
		return fmt.Errorf("%w: the message has unknown flags", core.ErrCorrupt)
	case len(m.data) > 0:
		return fmt.Errorf("%w: %d bytes are left over in the message", core.ErrCorrupt, len(m.data))
	}
	return nil
}
