package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// end waits for the requests in hand, after it has told them to end, and lets none in any more.
func TestTheFrontWaitsForItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront()
		left := false
		h := f.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			<-f.ctx.Done()
			time.Sleep(time.Second)
			left = true
		}))
		go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		synctest.Wait()
		f.end()
		require.True(t, left)
		require.PanicsWithValue(t, http.ErrAbortHandler, func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		})
		f.end() // a second time is harmless
	})
}

// A loop's error is kept when it ended by itself, and forgotten when it was told to end.
func TestTheGroupKeepsTheFirstFailure(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	g := newGroup(log)
	g.run("told", func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("its last words")
	})
	g.stop()
	require.NoError(t, g.failure())
	broken := errors.New("broken")
	g = newGroup(log)
	g.run("by itself", func(context.Context) error { return broken })
	g.wg.Wait()
	require.ErrorIs(t, g.failure(), broken)
	g.stop()
	require.ErrorIs(t, g.failure(), broken)
}
