// Package reports turns a run folder into pages: one self-contained HTML page with a timeline for each scenario, JUnit XML for
// CI, a Markdown summary for a pull request. It reads nothing but the run folder, so that a page can be made again from last
// month's data, and it judges nothing: every verdict on a page was written by a judge.
//
// It promises that a page needs no network, carries no script, and escapes every word that came from a node.
package reports
