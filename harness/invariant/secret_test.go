package invariant

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

const password = `pa"ss wörd/+secret`

func folder(t *testing.T, line string) *ledger.Scenario {
	s := hand(4)
	s.Dir = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(s.Dir, "nodes"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "nodes", "source-1.log"), []byte("first\n"+line+"\n"), 0o600))
	return s
}

func secretJudge(secrets ...string) func(*ledger.Scenario) *finding {
	return func(s *ledger.Scenario) *finding { return noSecret(s, secrets) }
}

// covers: HAR-08, CRD-13
func TestNoSecret(t *testing.T) {
	expect(t, secretJudge(password), folder(t, "nothing here"), ledger.Pass, "1 secrets")
	for how, line := range map[string]string{
		"raw":           "x " + password,
		"base64":        base64.StdEncoding.EncodeToString([]byte(password)),
		"base64url":     base64.RawURLEncoding.EncodeToString([]byte("??" + password)),
		"authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("link:"+password)),
		"other user":    "Basic " + base64.StdEncoding.EncodeToString([]byte("linker:"+password)),
		"third user":    "Basic " + base64.StdEncoding.EncodeToString([]byte("linke:"+password)),
		"hex":           hex.EncodeToString([]byte(password)),
		"query":         "https://h/?p=" + url.QueryEscape(password),
		"path":          url.PathEscape(password),
		"json":          `{"password":"pa\"ss wörd/+secret"}`,
	} {
		t.Run(how, func(t *testing.T) {
			s := folder(t, line)
			expect(t, secretJudge(password), s, ledger.Fail, "secret 1 stands in "+filepath.Join("nodes", "source-1.log")+", line 2")
			require.NotContains(t, secretJudge(password)(s).verdict("x").Says, "ss w")
		})
	}
}

// covers: HAR-08
func TestNoSecretInconclusive(t *testing.T) {
	expect(t, secretJudge(), folder(t, "x"), ledger.Inconclusive, "the rig named no secret")
	expect(t, secretJudge("short"), folder(t, "x"), ledger.Inconclusive, "too short")
	s := folder(t, "x")
	s.Dir = filepath.Join(s.Dir, "gone")
	expect(t, secretJudge(password), s, ledger.Inconclusive, "cannot be read whole")
}

// covers: LOG-01
func TestTheTargetsWordsStandNowhere(t *testing.T) {
	s := folder(t, `{"msg":"refused","error":"no `+ledger.AnswerMarker+`"}`)
	expect(t, secretJudge(password), s, ledger.Fail, "words of the target's answer stand in nodes/source-1.log, line 2")
}
