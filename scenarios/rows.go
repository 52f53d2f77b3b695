package scenarios

import (
	"fmt"
	"regexp"
	"strconv"
)

// groups are the groups of requirement rows and how many rows each has, numbered from 01.
var groups = []struct {
	Name string
	Rows int
}{
	{"CUR", 17}, {"LST", 8}, {"SND", 14}, {"GAT", 10}, {"ANS", 24}, {"LOG", 6}, {"TGT", 13}, {"RUN", 12}, {"CRD", 16}, {"NET", 8},
	{"WRT", 14}, {"UNS", 6}, {"BRK", 14}, {"HAR", 16},
}

var rowForm = regexp.MustCompile(`^([A-Z]{3})-(\d{2})$`)

// Rows are the IDs of all requirement rows, in the order of the requirements.
func Rows() []string {
	var out []string
	for _, g := range groups {
		for i := range g.Rows {
			out = append(out, fmt.Sprintf("%s-%02d", g.Name, i+1))
		}
	}
	return out
}

// rowProblem says what is wrong with a requirement ID, "" when nothing is.
func rowProblem(id string) string {
	m := rowForm.FindStringSubmatch(id)
	if m == nil {
		return fmt.Sprintf("%q is no requirement ID; it is written as in SND-04", id)
	}
	for _, g := range groups {
		if g.Name != m[1] {
			continue
		}
		if n, err := strconv.Atoi(m[2]); err != nil || n < 1 || n > g.Rows {
			return fmt.Sprintf("there is no row %s; allowed: %s-01 to %s-%02d", id, g.Name, g.Name, g.Rows)
		}
		return ""
	}
	names := make([]string, 0, len(groups))
	for _, g := range groups {
		names = append(names, g.Name)
	}
	return fmt.Sprintf("there is no group %s; %s", m[1], allowed(names))
}
