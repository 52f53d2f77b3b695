package scenarios

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sheet = `
name: x
covers: [HAR-05]
matrix:
  lanes: [1, 4]
  links:
    alone: {links: [{parent: orders, child: orders-to-b, lanes: $(lanes)}], tag: a}
    shared: {links: [{parent: orders, child: orders-to-b, lanes: $(lanes)}, {parent: orders, child: bills, topic: bills, lanes: 2}], tag: s}
  except: [{when: {lanes: ["4"], links: [shared]}, reason: too much}]
topics: {orders: }
links: $(links.links)
load: [{topic: orders, rate: 100/s, for: 10s, name: load-$(links.tag)-$(lanes)}]
`

// covers: HAR-04
func TestMatrixIsExpanded(t *testing.T) {
	got, err := ParseAll("x.yaml", []byte(sheet))
	require.NoError(t, err)
	var names, loads []string
	var links []int
	for _, s := range got.Scenarios {
		names, loads, links = append(names, s.Name), append(loads, s.Load[0].Name), append(links, len(s.Links))
		written, failed := Marshal(s)
		require.NoError(t, failed)
		again, failed := Parse("x.yaml", written)
		require.NoError(t, failed, "a cell as written is a scenario of its own:\n%s", written)
		require.Equal(t, s, again)
	}
	require.Equal(t, []string{"x [lanes=1 links=alone]", "x [lanes=1 links=shared]", "x [lanes=4 links=alone]"}, names)
	require.Equal(t, []string{"load-a-1", "load-s-1", "load-a-4"}, loads)
	require.Equal(t, []int{1, 2, 1}, links)
	require.Equal(t, 4, got.Scenarios[2].Links[0].Lanes)
	require.Equal(t, []Excepted{{Cell: map[string]string{"lanes": "4", "links": "shared"}, Reason: "too much"}}, got.Excepted)
	_, err = Parse("x.yaml", []byte(strings.Replace(good, "name: x", "name: x\nmatrix: {lanes: [1]}", 1)))
	require.ErrorContains(t, err, "x.yaml:3:1: matrix: stands for several scenarios")
}

// covers: HAR-04
func TestMistakesOfAMatrixAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown variable":  {"load-$(links.tag)", "load-$(lnks.tag)", `x.yaml:12:53: load[0].name: $(lnks.tag) is no variable of the matrix`},
		"unused variable":   {"  lanes: [1, 4]", "  lanes: [1, 4]\n  more: [1]", `x.yaml:6:3: matrix.more: nothing names it`},
		"unknown member":    {"$(links.tag)", "$(links.tga)", `load[0].name: links alone has no tga`},
		"member of a value": {"-$(lanes)", "-$(lanes.x)", `load[0].name: lanes 1 has no x`},
		"type":              {"[1, 4]", "[one, 4]", `x.yaml:5:11: links[0].lanes: wants a whole number`},
		"range":             {"[1, 4]", "[9, 4]", `links[0].lanes: allowed: 1 to 8`},
		"mapping in a text": {"load-$(links.tag)", "load-$(links.links)", `$(links.links) stands within a text, so it wants one value`},
		"itself":            {"tag: a", "tag: $(links.tag)", `is no variable of the matrix, or one that names itself`},
		"twice":             {"[1, 4]", "[4, 4]", `matrix.lanes: "4" stands there twice`},
		"empty":             {"[1, 4]", "[]", `matrix.lanes: wants values`},
		"no reason":         {", reason: too much", "", `matrix.except[0]: wants when and reason`},
		"except unknown":    {"links: [shared]", "lnks: [shared]", `matrix.except[0].when.lnks: is no variable of this matrix`},
		"except no value":   {`["4"]`, `["5"]`, `matrix.except[0].when.lanes: "5" is no value of lanes`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, sheet, c.from)
			_, err := ParseAll("x.yaml", []byte(strings.Replace(sheet, c.from, c.to, 1)))
			require.ErrorContains(t, err, c.want)
			lines := strings.Split(err.Error(), "\n")
			slices.Sort(lines)
			require.Len(t, slices.Compact(slices.Clone(lines)), len(lines), "each mistake stands once:\n%v", err)
		})
	}
}

// A new answer of the catalogue is red here until a file of the matrix places it.
// covers: HAR-03
func TestMatrixHasEveryAnswerAtEveryPlace(t *testing.T) {
	files, err := Find([]string{"matrix"})
	require.NoError(t, err)
	seen := map[string]string{}
	for _, f := range files {
		got, err := LoadAll(f)
		require.NoError(t, err)
		for _, s := range got.Scenarios {
			require.True(t, IsMatrixCell(s.Cell), "%s: %s names all of %v", f, s.Name, MatrixAxes())
			key := cellName(s.Cell)
			require.Empty(t, seen[key], "%s stands in two files", key)
			seen[key] = s.Name
			require.True(t, slices.ContainsFunc(s.Target.Fake.Steps, func(st FakeStep) bool { return st.Answer == s.Cell["answer"] }), s.Name)
			require.Equal(t, s.Cell["links"] == "shared", len(s.Links) == 2, s.Name)
			require.Equal(t, s.Cell["compression"], s.Remotes["b"].Limits.Compression, s.Name)
		}
		for _, e := range got.Excepted {
			seen[cellName(e.Cell)] = e.Reason
		}
	}
	cells := []map[string]string{{}}
	for _, a := range MatrixAxes() {
		var next []map[string]string
		for _, c := range cells {
			for _, v := range a.Values {
				one := maps.Clone(c)
				one[a.Name] = v
				next = append(next, one)
			}
		}
		cells = next
	}
	for _, c := range cells {
		require.NotEmpty(t, seen[cellName(c)], "no scenario of the matrix has %v", c)
	}
}

func cellName(cell map[string]string) string {
	var words []string
	for _, a := range MatrixAxes() {
		words = append(words, cell[a.Name])
	}
	return strings.Join(words, " ")
}
