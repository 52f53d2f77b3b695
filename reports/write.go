package reports

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"narad.example/harness/ledger"
)

//go:embed page.html
var pageSource string

//go:embed style.html
var styleSource string

var page = parse("page", pageSource)

// parse makes a page's template with the style that all pages share.
func parse(name, source string) *template.Template {
	t := template.New(name).Funcs(template.FuncMap{"words": words, "ms": seconds, "n": thousands, "span": span})
	template.Must(t.New("style").Parse(styleSource))
	return template.Must(t.Parse(source))
}

// words is a verdict as a person reads it.
func words(verdict string) string { return strings.ReplaceAll(verdict, "_", " ") }

// Names of the files that Write leaves in the run folder.
const (
	HTMLName     = "index.html"
	JUnitName    = "junit.xml"
	MarkdownName = "summary.md"
)

// Write makes the three pages of a run folder from its data.
func Write(dir string) error {
	p, err := Load(dir)
	if err != nil {
		return err
	}
	var html bytes.Buffer
	if err = page.Execute(&html, p); err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	junit, err := JUnit(p.Run)
	if err != nil {
		return err
	}
	for name, body := range map[string][]byte{HTMLName: html.Bytes(), JUnitName: junit, MarkdownName: []byte(Markdown(p.Run))} {
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
			return fmt.Errorf("the run folder: %w", err)
		}
	}
	return nil
}

type suite struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Property []property `xml:"properties>property"`
	Cases    []testCase `xml:"testcase"`
}

type properties struct {
	List []property `xml:"property"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testCase struct {
	Class    string      `xml:"classname,attr"`
	Name     string      `xml:"name,attr"`
	Time     string      `xml:"time,attr"`
	Property *properties `xml:"properties"`
	Failure  *message    `xml:"failure"`
	Error    *message    `xml:"error"`
	Skipped  *message    `xml:"skipped"`
}

type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit is the run as JUnit XML: a violation is a failure, an inconclusive scenario an error, one that was not run skipped.
func JUnit(run ledger.Run) ([]byte, error) {
	s := suite{Name: "chaos " + run.Backend, Tests: len(run.Scenarios), Property: []property{{"seed", fmt.Sprint(run.Seed)}, {"commit", run.Commit}}}
	for _, r := range run.Scenarios {
		c := testCase{Class: "scenarios." + strings.TrimSuffix(filepath.ToSlash(r.File), ".yaml"), Name: r.Name, Time: fmt.Sprintf("%.3f", float64(r.DurationMS)/1000)}
		if r.Tries > 0 {
			c.Property = &properties{[]property{{"tries", fmt.Sprint(r.Tries)}}}
		}
		m := &message{Message: r.Says, Text: judgesOf(r)}
		switch r.Verdict {
		case ledger.Pass:
		case ledger.Fail:
			s.Failures++
			c.Failure = m
		case ledger.NotRun:
			s.Skipped++
			c.Skipped = m
		default:
			s.Errors++
			c.Error = m
		}
		s.Cases = append(s.Cases, c)
	}
	body, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("junit: %w", err)
	}
	return append([]byte(xml.Header), append(body, '\n')...), nil
}

// judgesOf is one line for each judge that did not pass.
func judgesOf(r ledger.ScenarioRun) string {
	var b strings.Builder
	for _, v := range r.Invariants {
		if v.Verdict != ledger.Pass {
			fmt.Fprintf(&b, "%s: %s: %s\n", v.Name, v.Verdict, v.Says)
		}
	}
	return b.String()
}

// Markdown is the run as a comment on a pull request.
func Markdown(run ledger.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Chaos run: %s\n\nseed %d, backend %s, commit %s\n\n", words(run.Verdict), run.Seed, run.Backend, run.Commit)
	if m := matrix(run); m != nil {
		fmt.Fprintf(&b, "Matrix of the sender: %s\n\n", m.Counts())
	}
	b.WriteString("| Scenario | Verdict | Tries | Time | Acknowledged | On wire | Resent | Missing | Reordered | Changed |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range run.Scenarios {
		c := r.Counts
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", cell(r.Name), words(r.Verdict), r.Tries, seconds(r.DurationMS),
			thousands(c.Acknowledged), thousands(c.OnWire), thousands(c.Resent), thousands(c.Missing), thousands(c.Reordered), thousands(c.Changed))
	}
	for _, r := range run.Scenarios {
		for i, t := range r.Earlier {
			fmt.Fprintf(&b, "\n**%s**, try %d of %d: %s\n", cell(r.Name), i+1, r.Tries, cell(words(t.Verdict)+" "+t.Says))
		}
		if r.Verdict == ledger.Pass {
			continue
		}
		fmt.Fprintf(&b, "\n**%s**: %s\n", cell(r.Name), cell(words(r.Verdict)+" "+r.Says))
		for line := range strings.Lines(judgesOf(r)) {
			fmt.Fprintf(&b, "- %s\n", cell(strings.TrimSpace(line)))
		}
		fmt.Fprintf(&b, "\n`%s`\n", replay(run, r))
	}
	return b.String()
}

// cell keeps a text from ending a table's cell or line.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(s)
}
