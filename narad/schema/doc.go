// Package schema checks payloads against the JSON Schema of their topic (BRK-11).
//
// Draft: 2020-12, unless the schema's `$schema` names draft 4, 6, 7 or 2019-09. What a draft only annotates is not checked (`format` from
// 2019-09 on, content keywords). A schema is an object or `true`. Patterns are Go's (RE2): no look-around, no back references.
//
// Nothing is ever loaded: a `$ref` or `$schema` may name a place in the schema itself, an `$id` in it or one of the drafts, which are built
// in. Everything else, file and http alike, is refused and never opened or dialled.
//
// Bounds of a schema, held by Parse: 64 KiB without white space, 64 levels, 10,000 values of which 2,000 may be schemas, 2 MiB of paths
// to them, 20,000 instructions of patterns, numbers of 400 characters and exponents of 400, 64 references or combinations that follow each other on one value of a payload and no ring of them.
//
// Where what compiles: the node that takes a request parses and compiles the schema before it proposes it. The state machine compares versions and
// sums and compiles nothing. Every node compiles a topic's current schema when a payload first meets it there, and keeps it by topic ID and
// sum. The sum stands for the version: a child that adopts its parent's history may give an old number to another schema. What is kept is
// bounded in topics and in size, oldest use first, and goes with its topic (Keep).
//
// What a payload may cost: a schema of a few hundred bytes can want the same value checked 2^60 times, or a small pattern a whole MiB. So every
// step is paid for before it is made, from a budget of 100,000 and 8 for each byte of the payload, and a payload that spends all is
// refused. A payload is looked at twice: once for yes or no, which keeps nothing but a verdict, and if the answer is no once more, on a small
// budget, for the place. One payload of a topic is checked at a time on a node, and no more at once than there are slots; who waits
// longer than 2 s gets 503 `schema validation slot`, and nothing was stored. A topic with a hostile schema thus holds one slot, for a few
// seconds at the most, and no other topic up.
//
// What a refusal says: where in the payload, which keyword and what the schema wants there. Never a value of the payload; of its names only those
// that the schema has itself, `*` for all others.
//
// Two schemas are the same when they are the same JSON value, whatever their white space, order of members or spelling of numbers (1, 1.0,
// 10e-1). Sum is the digest of that value. Sums stand in Raft: how they are made must never change.
//
// Refused: formats as assertions for all drafts (a schema would mean another thing than its draft says), one compiled schema a core for each topic
// (a hostile topic could take every slot), a time limit in place of the budget (the same payload must get the same answer on every node).
package schema
