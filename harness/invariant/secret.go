package invariant

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"narad.example/harness/ledger"
)

// shortest is the length below which a secret would be found by chance.
const shortest = 8

// noSecret is HAR-08's last part and CRD-13: no file of the run folder holds one of the secrets, as it is or in base64, base64url, hex, URL
// escapes, JSON escapes, or inside an Authorization value, and nothing of a target's answer (LOG-01, ledger.AnswerMarker). A verdict names file and line and which secret by its number, never the secret.
func noSecret(s *ledger.Scenario, secrets []string) *finding {
	f := &finding{promise: "no secret stands anywhere in the run folder"}
	var forms []form
	for i, secret := range secrets {
		if len(secret) < shortest {
			f.lack("secret %d is too short to look for", i+1)
			continue
		}
		forms = append(forms, formsOf(i+1, secret)...)
	}
	if len(secrets) == 0 {
		return f.lack("the rig named no secret")
	}
	forms = append(forms, form{how: "as it is", bytes: []byte(ledger.AnswerMarker)})
	if !s.Facts.LogsRead {
		f.lack("the log of some node was not read")
	}
	files := 0
	err := filepath.WalkDir(s.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		name, err := filepath.Rel(s.Dir, path)
		if err != nil {
			return err
		}
		search(f, name, data, forms)
		return nil
	})
	if err != nil {
		f.lack("the run folder cannot be read whole: %v", err)
	}
	if files == 0 {
		f.lack("the run folder is empty")
	}
	f.looked = fmt.Sprintf("%d secrets and the target's words in %d spellings, %d files", len(secrets), len(forms), files)
	return f
}

// form is one spelling of a secret.
type form struct {
	number int
	how    string
	bytes  []byte
}

func search(f *finding, name string, data []byte, forms []form) {
	for _, one := range forms {
		if i := bytes.Index(data, one.bytes); i >= 0 {
			line := bytes.Count(data[:i], []byte{'\n'}) + 1
			if one.number == 0 {
				f.breaks(fmt.Sprintf("%s:%d", name, line), "words of the target's answer stand in %s, line %d", name, line)
				continue
			}
			f.breaks(fmt.Sprintf("%s:%d", name, line), "secret %d stands in %s, line %d, %s", one.number, name, line, one.how)
		}
	}
}

func formsOf(number int, secret string) []form {
	var out []form
	seen := map[string]bool{}
	add := func(how, text string) {
		if len(text) >= shortest && !seen[text] {
			seen[text] = true
			out = append(out, form{number, how, []byte(text)})
		}
	}
	add("as it is", secret)
	// The same bytes in base64 begin differently by what stands before them: "user:" in an Authorization value, for one.
	for shift := range 3 {
		padded := make([]byte, shift, shift+len(secret))
		padded = append(padded, secret...)
		first := []int{0, 2, 3}[shift] // characters that what stands before has a part in
		last := len(padded) * 8 / 6    // whole characters of the secret alone
		std := base64.RawStdEncoding.EncodeToString(padded)[first:last]
		add("in base64", std)
		add("in base64url", base64.RawURLEncoding.EncodeToString(padded)[first:last])
	}
	add("in hex", hex.EncodeToString([]byte(secret)))
	add("in hex", strings.ToUpper(hex.EncodeToString([]byte(secret))))
	add("in URL escapes", url.QueryEscape(secret))
	add("in URL escapes", url.PathEscape(secret))
	if quoted, err := json.Marshal(secret); err == nil {
		add("in JSON escapes", strings.Trim(string(quoted), `"`))
	}
	if quoted := fmt.Sprintf("%q", secret); len(quoted) > 2 {
		add("in Go escapes", quoted[1:len(quoted)-1])
	}
	return out
}
