package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// looks are the answers to one look at the children each.
func looks(entries ...string) []string {
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e, "409"), strings.HasPrefix(e, "503"):
			out = append(out, e)
		default:
			out = append(out, `200 {"parent":"a","children":[{"name":"x","lag_messages":5},{"name":"b",`+e+`}]}`)
		}
	}
	return out
}

const (
	behind  = `"lag_messages":3,"lag_complete":true,"state":"running"`
	partial = `"lag_messages":0,"lag_complete":false,"state":"unknown"`
	done    = `"lag_messages":0,"lag_complete":true,"state":"running"`
	drained = `"lag_messages":0,"lag_complete":true,"state":"running","source_drained":true`
	down    = `"lag_messages":0,"lag_complete":true,"state":"unavailable"`
	paused  = `"lag_messages":0,"lag_complete":true,"state":"paused"`
	refused = `"lag_messages":1,"lag_complete":true,"state":"rejected_record"`
	local   = `"lag_messages":0,"lag_complete":true`
)

func TestTopicWait(t *testing.T) {
	for name, c := range map[string]struct {
		flags string
		seen  []string
		exit  int
		took  time.Duration
	}{
		"reached":          {"--lag-zero", []string{behind, partial, done}, 0, 4 * time.Second},
		"while it is down": {"--lag-zero", []string{down}, 0, 0},
		"drained":          {"--source-drained", []string{done, drained}, 0, 2 * time.Second},
		"stable":           {"--lag-zero --stable 3s", []string{done, behind, done, done, done}, 0, 7 * time.Second},
		"late":             {"--lag-zero --timeout 3s", []string{behind, behind}, 1, 3 * time.Second},
		"not now":          {"--lag-zero", []string{`503 {"error":"starting"}`, done}, 0, 2 * time.Second},
		"paused":           {"--lag-zero", []string{behind, paused}, 2, 2 * time.Second},
		"stalled":          {"--source-drained --interval 5s", []string{behind, refused}, 2, 5 * time.Second},
		"local":            {"--lag-zero", []string{local}, 0, 0},
		"local, drained":   {"--source-drained", []string{local}, 1, 0},
		"refused":          {"--lag-zero", []string{`409 {"error":"no"}`}, 1, 0},
		"neither":          {"", nil, 1, 0},
		"both":             {"--lag-zero --source-drained", nil, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &node{answers: looks(c.seen...)}
				began := time.Now()
				_, err := run(n, nil, "", append([]string{"topic", "wait", "a", "b"}, strings.Fields(c.flags)...)...)
				require.Equal(t, c.exit, ExitCode(err), "%v", err)
				require.Equal(t, c.took, time.Since(began))
				require.Empty(t, n.answers)
			})
		})
	}
	_, err := run(&node{answers: []string{`200 {"parent":"a","children":[]}`}}, nil, "", "topic", "wait", "a", "b", "--lag-zero")
	require.ErrorContains(t, err, "a has no child b")
}

func TestRemoteCommandsThatFail(t *testing.T) {
	out, err := run(&node{answers: []string{`200 {"remote":"r","result":"fail","class":"auth_failed"}`}}, nil, "", "remote", "test", "r", "--topic", "t")
	require.ErrorContains(t, err, "auth_failed")
	require.Contains(t, out, `"result": "fail"`)
	_, err = run(&node{}, nil, "", "remote", "set", "r")
	require.ErrorContains(t, err, "nothing to change")
	_, err = run(&node{}, nil, "", "remote", "set", "r", "--username", "s")
	require.ErrorContains(t, err, "standard input")
	_, err = run(&node{}, nil, "", "topic", "skip", "a", "b", "0", "x")
	require.ErrorContains(t, err, "blocked_at")
	require.Equal(t, 1, ExitCode(err))
}
