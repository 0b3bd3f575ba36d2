package demo

import "sync"

// maxLastBytes is enough for an error message.
const maxLastBytes = 4 << 10

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	mu  sync.Mutex
	end []byte
}

func (l *lastBytes) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, b...)
	if extra := len(l.end) - maxLastBytes; extra > 0 {
		l.end = append([]byte(nil), l.end[extra:]...)
	}
	return len(b), nil
}

func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.end)
}

func (l *lastBytes) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = nil
}
