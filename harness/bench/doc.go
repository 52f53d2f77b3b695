// Package bench measures the broker against the least work that can copy a record, in one run, and prints ratios (spec of
// performance: PRF rows). A rate moves by a factor of two on a shared machine; a ratio of medians over interleaved rounds
// does not, so nothing here asserts a time.
//
// The floor is a pair of processes of this binary: a source that reads framed records from a file, appends them to a JSON
// body and posts it over TLS 1.3 with one request in flight per lane, and a target that checks the JSON in one pass, appends,
// fdatasyncs and answers 202; then the source writes its offset. Whatever a broker does beyond that is its own cost.
//
// The drain is two real nodes, each its own process, the target serving HTTPS itself: no proxy and no tap stand between. The
// backlog is produced once in a run and each drain attaches a new link to it.
//
// It promises: rounds are interleaved; a row that could not be measured is an error that names it; when Run returns no
// process and no file of it is left, also after its context ended, and where the system can do that the children die with
// this process. One goroutine reaps each child and ends with it, one starts them all and ends with the run.
//
// Refused: a figure that fails a run, and the broker's own client under load, since the load shares the machine with the node
// that it measures.
package bench
