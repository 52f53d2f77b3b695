// Package mutants proves that the proof works (HAR-14): it plants one named bug at a time into a copy of the broker, builds
// the harness around it and runs the scenario that must notice. A bug that no judge catches fails the run, and so do a patch
// that no longer applies and a bug that another judge than the named one caught.
//
// A planted bug is a small patch in this folder, bug-<name>.patch, with a header of "Key: value" lines before the diff:
//
//	Bug:      what it breaks, in words
//	Promise:  the judge that must fail, by its name in verdicts.json
//	Scenario: the file that is run, from the module's folder
//	Backend:  sim (the bug is inside the harness's own binary) or process
//
// The patch is applied to copies of the files that it names and the build sees them through `go build -overlay`: the
// product's own code holds no trace of a bug. A scenario that misses its bug, or proves nothing, is played again under the next seed and
// the line of a bug that was not caught at once says so. As many mutants as there are processors, two at most, are built and run at a time;
// Run waits for its workers.
package mutants
