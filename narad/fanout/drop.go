package fanout

import "narad.example/narad/partition"

// sentLanes keeps the lane of each record of a slab that is read again, numbers only, so that a drop inside the slab counts
// what was not sent and nothing else (DEC-29).
type sentLanes struct {
	first int64
	lanes []uint8 // by offset from first
}

// laneOf is the lane of a record (SND-01): keyed records by their key's hash, keyless ones by their parent offset.
func laneOf(r *partition.Record, lanes int) int {
	if len(r.Key) > 0 {
		return partition.ForKey(r.Key, lanes)
	}
	return int(r.Offset % int64(lanes))
}

// note fills it from the records of a slab; a local child (no lanes) has none.
func (l *sentLanes) note(recs []partition.Record, lanes int) {
	if lanes == 0 || len(recs) == 0 || l.lanes != nil {
		return
	}
	l.first = recs[0].Offset
	l.lanes = make([]uint8, 0, len(recs))
	for i := range recs {
		l.lanes = append(l.lanes, uint8(laneOf(&recs[i], lanes)))
	}
}

// unsent counts the offsets in [from, to) that no lane's mark covers.
func (l *sentLanes) unsent(from, to int64, marks []int64) int64 {
	n := to - from
	for i, lane := range l.lanes {
		offset := l.first + int64(i)
		if offset >= from && offset < to && int(lane) < len(marks) && offset <= marks[lane] {
			n--
		}
	}
	return n
}
