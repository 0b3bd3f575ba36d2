package metadata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// In JSON every handle is an object whose "kind" tells its type. Members that are zero are left out. Texts that are no valid UTF-8
// (names with a lone surrogate) are {"base64": …}, so that nothing is lost.

// MarshalJSON implements [json.Marshaler].
func (s SubtaskState) MarshalJSON() ([]byte, error) {
	var w stateJSON
	var err error
	if w.ManagedOperator, err = operatorToJSON(s.ManagedOperator); err != nil {
		return nil, err
	}
	if w.RawOperator, err = operatorToJSON(s.RawOperator); err != nil {
		return nil, err
	}
	if w.ManagedKeyed, err = keyedToJSON(s.ManagedKeyed, 0); err != nil {
		return nil, err
	}
	if w.RawKeyed, err = keyedToJSON(s.RawKeyed, 0); err != nil {
		return nil, err
	}
	if w.InputChannels, err = channelsToJSON(s.InputChannels); err != nil {
		return nil, err
	}
	if w.ResultSubpartitions, err = channelsToJSON(s.ResultSubpartitions); err != nil {
		return nil, err
	}
	return json.Marshal(&w)
}

// UnmarshalJSON implements [json.Unmarshaler]. What it accepts can be written: the rules of [Append] are checked. The error is
// core.ErrCorrupt.
func (s *SubtaskState) UnmarshalJSON(data []byte) error {
	var w stateJSON
	if err := strict(data, &w); err != nil {
		return err
	}
	state, err := w.state()
	if err != nil {
		return err
	}
	if err := check(state); err != nil {
		return err
	}
	*s = *state
	return nil
}

// MarshalStream returns the JSON form of a stream handle; that of nil is null.
func MarshalStream(h core.StreamHandle) ([]byte, error) {
	w, err := streamToJSON(h, 0)
	if err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// UnmarshalStream is the inverse of [MarshalStream]. The error is core.ErrCorrupt.
func UnmarshalStream(data []byte) (core.StreamHandle, error) {
	var w *streamJSON
	if err := strict(data, &w); err != nil {
		return nil, err
	}
	h, err := w.handle()
	if err != nil || h == nil {
		return nil, err
	}
	return h, check(&SubtaskState{RawOperator: &OperatorHandle{Delegate: h}})
}

// MarshalKeyed returns the JSON form of a keyed handle; that of nil is null.
func MarshalKeyed(h KeyedHandle) ([]byte, error) {
	w, err := keyedToJSON(h, 0)
	if err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// UnmarshalKeyed is the inverse of [MarshalKeyed]. The error is core.ErrCorrupt.
func UnmarshalKeyed(data []byte) (KeyedHandle, error) {
	var w *keyedJSON
	if err := strict(data, &w); err != nil {
		return nil, err
	}
	h, err := w.handle()
	if err != nil || h == nil {
		return nil, err
	}
	return h, check(&SubtaskState{RawKeyed: h})
}

// MarshalJSON implements [json.Marshaler].
func (h *KeyGroupsHandle) MarshalJSON() ([]byte, error) { return MarshalKeyed(h) }

// MarshalJSON implements [json.Marshaler].
func (h *IncrementalHandle) MarshalJSON() ([]byte, error) { return MarshalKeyed(h) }

// MarshalJSON implements [json.Marshaler].
func (h *ChangelogHandle) MarshalJSON() ([]byte, error) { return MarshalKeyed(h) }

// MarshalJSON implements [json.Marshaler].
func (h *ChangelogBytesHandle) MarshalJSON() ([]byte, error) { return MarshalKeyed(h) }

// MarshalJSON implements [json.Marshaler].
func (h *ChangelogFileHandle) MarshalJSON() ([]byte, error) { return MarshalKeyed(h) }

// MarshalJSON implements [json.Marshaler].
func (h OperatorHandle) MarshalJSON() ([]byte, error) {
	w, err := operatorToJSON(&h)
	if err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements [json.Unmarshaler]. The error is core.ErrCorrupt.
func (h *OperatorHandle) UnmarshalJSON(data []byte) error {
	var w operatorJSON
	if err := strict(data, &w); err != nil {
		return err
	}
	read, err := w.handle()
	if err != nil {
		return err
	}
	if err := check(&SubtaskState{RawOperator: read}); err != nil {
		return err
	}
	*h = *read
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (h ChannelHandle) MarshalJSON() ([]byte, error) {
	w, err := channelToJSON(&h)
	if err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements [json.Unmarshaler]. The error is core.ErrCorrupt.
func (h *ChannelHandle) UnmarshalJSON(data []byte) error {
	var w channelJSON
	if err := strict(data, &w); err != nil {
		return err
	}
	read, err := w.handle()
	if err != nil {
		return err
	}
	if err := check(&SubtaskState{InputChannels: []ChannelHandle{read}}); err != nil {
		return err
	}
	*h = read
	return nil
}

// strict decodes one JSON value and takes no member that is not known: a handle of which something is left out would lose
// state.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return corruptJSON(err)
	}
	return nil
}

func corruptJSON(err error) error {
	if errors.Is(err, core.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("handle in JSON: %w: %w", core.ErrCorrupt, err)
}

// check finds what can be said in JSON and not be written.
func check(s *SubtaskState) error {
	if _, err := AppendSubtask(nil, s); err != nil {
		return corruptJSON(err)
	}
	return nil
}

// textJSON is a string that may hold lone surrogates.
type textJSON string

// MarshalJSON implements [json.Marshaler].
func (t textJSON) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string][]byte{"base64": []byte(t)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *textJSON) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var w struct {
			Base64 []byte `json:"base64"`
		}
		if err := strict(data, &w); err != nil {
			return err
		}
		*t = textJSON(w.Base64)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}
