package run

import (
	"bufio"
	"strconv"
	"strings"
)

// kept are the metrics that a sample keeps; histogram buckets are left out.
var kept = []string{"narad_remote_", "narad_fanout_", "narad_ingress_", "narad_errors_total"}

const backlogMetric = "narad_ingress_dispatch_backlog_records"

// readMetrics reads a metrics page in Prometheus's text format, series by series.
func readMetrics(page string) map[string]float64 {
	out := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !wanted(line) {
			continue
		}
		end := strings.LastIndexByte(line, ' ') // a label's value may hold spaces, a number does not
		if end < 0 {
			continue
		}
		if v, err := strconv.ParseFloat(line[end+1:], 64); err == nil {
			out[line[:end]] = v
		}
	}
	return out
}

func wanted(line string) bool {
	for _, prefix := range kept {
		if strings.HasPrefix(line, prefix) {
			name, _, _ := strings.Cut(line, "{")
			return !strings.HasSuffix(name, "_bucket")
		}
	}
	return false
}
