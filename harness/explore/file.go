package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"narad.example/scenarios"
)

// write writes the scenario file of a failure. Its name and seed are those of the schedule, so that every random source of a replay is the same.
func write(f *Failure, seed uint64, run string) error {
	text, err := scenarios.Marshal(f.Shrunk.Scenario)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(f.File), 0o755); err != nil {
		return fmt.Errorf("explore: %w", err)
	}
	if err = os.WriteFile(f.File, append([]byte(header(f, seed, run)), text...), 0o644); err != nil {
		return fmt.Errorf("explore: %w", err)
	}
	return nil
}

func header(f *Failure, seed uint64, run string) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		for part := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
			b.WriteString("# " + part + "\n")
		}
	}
	line("Found by chaos explore: seed %d, schedule %d.", seed, f.Number)
	line("Judge: %s: %s", f.Judge, brief(f.Says))
	line("The schedule as it was failed in %d of %d more runs; its first run is in %s.", f.Failed, f.Again, run)
	switch {
	case f.Failed == 0 && f.Again < Repeats:
		line("It is as it was: time ended before it had run again often enough.")
	case f.Failed == 0:
		line("It is as it was: it did not fail again, so that nothing could be taken away.")
	case f.Shrunk.Smallest:
		line("%d changes made it smaller; no single one that is left still fails (%d tried).", f.Shrunk.Kept, f.Shrunk.Tried)
	default:
		line("%d changes made it smaller; time or tries ended before all were tried (%d).", f.Shrunk.Kept, f.Shrunk.Tried)
	}
	line("Run it: %s chaos run --backend sim --seed %d %s", OneProcessor, seed, f.File)
	return b.String()
}
