package ledger

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestIDs(t *testing.T) {
	id := NewID(0xabc)
	require.Equal(t, "nrd-0000000000000abc", id)
	require.Equal(t, id, IDOf(nil, []byte(`{"id":"`+id+`"}`)))
	require.Equal(t, id, IDOf([]byte("k\x00"+id), []byte("x")))
	require.Equal(t, id, IDOf(nil, []byte("nrd-nrd-SHORT "+id)), "a marker that is none does not hide the next")
	require.Empty(t, IDOf([]byte("nrd-"), []byte("nrd-00000000")))
}

// What a consumer sees of a payload and what the generator expects it to see are the same, whatever the payload.
func TestVisibleAgreesWithAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 1, 40),
			rapid.Map(rapid.String(), func(s string) []byte { b, _ := json.Marshal(s); return append([]byte(" "), b...) }),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(s + " ") }),
			rapid.Just([]byte(" {\"a\": 1}\n")),
		).Draw(t, "payload")
		raw, encoding := answer(payload)
		seen, err := FromAnswer(raw, encoding)
		require.NoError(t, err)
		require.Equal(t, string(Visible(payload)), string(seen))
	})
}

// answer writes a payload as api.md says a node does.
func answer(payload []byte) (json.RawMessage, string) {
	if json.Valid(payload) && string([]rune(string(payload))) == string(payload) {
		return payload, ""
	}
	if string([]rune(string(payload))) == string(payload) {
		b, _ := json.Marshal(string(payload))
		return b, ""
	}
	b, _ := json.Marshal(payload)
	return b, "base64"
}

func TestJSONL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "faults.jsonl")
	want := []Fault{{Name: "one", Kind: "kill", On: "source-1", Start: 1, End: 2}, {Name: "two", Landed: true}}
	require.NoError(t, Write(path, want))
	got, err := Read[Fault](path)
	require.NoError(t, err)
	require.Equal(t, want, got)

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(data, []byte(`{"name":"thr`)...), 0o600))
	got, err = Read[Fault](path)
	require.NoError(t, err)
	require.Len(t, got, 2, "a line cut by an abort is left out")

	require.NoError(t, os.WriteFile(path, append([]byte("{broken\n"), data...), 0o600))
	_, err = Read[Fault](path)
	require.ErrorContains(t, err, "faults.jsonl:1")
}

func TestLoadNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, WriteJSON(filepath.Join(dir, FactsName), Facts{Scenario: "x"}))
	require.NoError(t, Write(filepath.Join(dir, WireName), []WireRequest{{Seq: 1, Outcome: WireAccepted}}))
	s, err := Load(dir)
	require.NoError(t, err)
	require.Len(t, s.Wire, 1)
	require.Empty(t, s.Lacks(FactsName, WireName))
	require.Equal(t, "parent.jsonl: absent", s.Lacks(WireName, ParentName))
}

func TestWorst(t *testing.T) {
	require.Equal(t, Pass, Worst(Pass, Pass))
	require.Equal(t, NotRun, Worst(Pass, NotRun))
	require.Equal(t, Inconclusive, Worst(Pass, NotRun, "green?"))
	require.Equal(t, Fail, Worst(Inconclusive, Fail, Pass))
	require.Equal(t, Inconclusive, Worst())
	require.Equal(t, "resets-in-the-middle-of-uploads", Slug("Resets in the middle of uploads!"))
}

// A record whose payload has no room for an ID is the one produce that has its key and payload; of two that look alike it is none.
func TestSmallPayloadsAreResolved(t *testing.T) {
	dir := t.TempDir()
	op := func(id, payload, seen string) Operation {
		return Operation{Kind: KindProduce, ID: id, Key: "aw==", Payload: payload, Seen: seen}
	}
	require.NoError(t, Write(filepath.Join(dir, OperationsName), []Operation{op(NewID(1), "p1", "s1"), op(NewID(2), "p2", ""), op(NewID(3), "p3", ""), op(NewID(4), "p3", "")}))
	require.NoError(t, Write(filepath.Join(dir, WireName), []WireRequest{{Records: []WireRecord{
		{Key: "aw==", Payload: "p1"}, {Key: "aw==", Payload: "s1"}, {Key: "bw==", Payload: "p2"}, {Key: "aw==", Payload: "p3"}, {ID: "other", Key: "aw==", Payload: "p2"},
	}}}))
	require.NoError(t, Write(filepath.Join(dir, ParentName), []Stored{{Key: "aw==", Payload: "s1"}, {Key: "aw==", Payload: "p2"}}))
	s, err := Load(dir)
	require.NoError(t, err)
	var ids []string
	for _, r := range s.Wire[0].Records {
		ids = append(ids, r.ID)
	}
	require.Equal(t, []string{NewID(1), "", "", "", "other"}, ids)
	require.Equal(t, NewID(1), s.Parent[0].ID)
	require.Equal(t, NewID(2), s.Parent[1].ID)
}
