package run

import "narad.example/harness/ledger"

// Exit codes of the harness (harness.md, Verdicts).
const (
	ExitPass         = 0
	ExitViolation    = 1
	ExitInconclusive = 2 // or trouble of the harness, or nothing was run
	ExitInvalid      = 3 // a scenario file with mistakes
)

// ExitCode maps a run's verdict. A run whose scenarios were all skipped proved nothing.
func ExitCode(verdict string) int {
	switch verdict {
	case ledger.Pass:
		return ExitPass
	case ledger.Fail:
		return ExitViolation
	}
	return ExitInconclusive
}

// Fold is the verdict of a run: the worst of its scenarios. Skipped ones do not colour it, unless nothing else is there.
func Fold(scenarios []ledger.ScenarioRun) string {
	var all []string
	for _, s := range scenarios {
		if s.Verdict != ledger.NotRun {
			all = append(all, s.Verdict)
		}
	}
	if len(all) == 0 {
		return ledger.NotRun
	}
	return ledger.Worst(all...)
}
