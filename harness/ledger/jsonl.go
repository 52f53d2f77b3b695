package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"narad.example/narad/vfs"
)

// Writer appends values as JSON lines. It is safe for several goroutines.
type Writer[T any] struct {
	file *os.File

	mu  sync.Mutex // guards buf and n; held for a write to the file, never while waiting for anything else
	buf *bufio.Writer
	n   int64
}

// Create makes the file anew, and its folder.
func Create[T any](path string) (*Writer[T], error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	return &Writer[T]{file: f, buf: bufio.NewWriterSize(f, 64<<10)}, nil
}

// Append writes one line.
func (w *Writer[T]) Append(v T) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("ledger line: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	if _, err = w.buf.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ledger line: %w", err)
	}
	return nil
}

// Len is the number of lines appended.
func (w *Writer[T]) Len() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Flush hands what was appended to the operating system.
func (w *Writer[T]) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Flush()
}

// Close flushes and closes the file.
func (w *Writer[T]) Close() error { return errors.Join(w.Flush(), w.file.Close()) }

// Write makes a whole JSONL file of vs.
func Write[T any](path string, vs []T) error {
	w, err := Create[T](path)
	if err != nil {
		return err
	}
	for _, v := range vs {
		if err = w.Append(v); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// Read reads a JSONL file. A last line without its end is left out, since an aborted run may have cut it; any other line that
// is no T is an error with its number. A file that is absent is an error that matches fs.ErrNotExist.
func Read[T any](path string) ([]T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	var out []T
	for n := 1; len(data) > 0; n++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		data = rest
		if !whole {
			return out, nil
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var v T
		if err = json.Unmarshal(line, &v); err != nil {
			return out, fmt.Errorf("%s:%d: %w", filepath.Base(path), n, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// WriteJSON writes v as one indented document, whole or not at all.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	return Replace(path, append(data, '\n'))
}

// Replace puts data in place of a file, durably: whoever reads sees the old one or the new one, also after the machine has died.
func Replace(path string, data []byte) error {
	if err := vfs.WriteFile(vfs.OS(), path, data, 0o644); err != nil {
		return fmt.Errorf("replacing %s: %w", filepath.Base(path), err)
	}
	return nil
}

// ReadJSON reads a document that WriteJSON wrote.
func ReadJSON[T any](path string) (T, error) {
	var v T
	f, err := os.Open(path)
	if err != nil {
		return v, fmt.Errorf("run folder: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(f)
	if err != nil {
		return v, fmt.Errorf("run folder: %w", err)
	}
	if err = json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return v, nil
}
