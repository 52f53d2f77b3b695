package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// covers: WRT-11
func TestLineIsWrittenAtAnyLevel(t *testing.T) {
	var out bytes.Buffer
	l := New(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})))
	l.Write(t.Context(), Line{
		Event: "remote.create", Actor: "admin", Target: "berlin", Outcome: OK, Status: 201, RequestID: "00112233aabbccdd",
		Extra: []slog.Attr{slog.Bool("force", true)},
	})
	require.True(t, l.Write(t.Context(), Line{Event: "remote.create", Actor: "admin", Target: "berlin", Outcome: Committed, RequestID: "00112233aabbccdd"}))
	d := json.NewDecoder(&out)
	var first, second map[string]any
	require.NoError(t, d.Decode(&first))
	require.NoError(t, d.Decode(&second))
	delete(first, "time")
	delete(second, "time")
	require.Equal(t, map[string]any{
		"level": "INFO", "msg": "audit", "component": "audit", "event": "remote.create", "actor": "admin", "target": "berlin",
		"outcome": "ok", "status": float64(201), "request_id": "00112233aabbccdd", "force": true,
	}, first)
	require.NotContains(t, second, "status")
	require.Zero(t, l.Lost())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestLostLinesAreCounted(t *testing.T) {
	l := New(slog.New(slog.NewJSONHandler(full{}, nil)))
	require.False(t, l.Write(t.Context(), Line{Event: "topic.create"}))
	require.EqualValues(t, 1, l.Lost())
}
