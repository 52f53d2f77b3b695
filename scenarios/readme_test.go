package scenarios

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every scenario file has a row in the catalogue, and every row has its files.
//
// covers: HAR-04
func TestTheCatalogueIsWhole(t *testing.T) {
	body, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(body), "\n## The catalogue\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	files, err := Find([]string{"."})
	require.NoError(t, err)
	named := map[string]bool{}
	pattern := regexp.MustCompile("`([^`]+\\.yaml)`")
	for row := range strings.Lines(text) {
		cells := strings.Split(row, "|")
		if len(cells) < 2 {
			continue
		}
		for _, m := range pattern.FindAllStringSubmatch(cells[1], -1) {
			hits := slices.DeleteFunc(slices.Clone(files), func(f string) bool {
				ok, merr := path.Match(m[1], f)
				return merr != nil || !ok
			})
			require.NotEmpty(t, hits, "the catalogue names %s, which is not there", m[1])
			for _, f := range hits {
				named[f] = true
			}
		}
	}
	for _, f := range files {
		require.True(t, named[f], "%s is in no row of the catalogue in README.md", f)
	}
}
