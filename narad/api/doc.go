// Package api is the HTTP surface of a node: routing, decoding, status codes, the audit line of the node that took a request
// (api.md; WRT-11). One file per resource. It decides nothing: it asks package access who may do what, calls one of the
// interfaces in ports.go, and turns what comes back into an answer.
//
// It promises: refusals in the order 401, 415, 404 or 405 of the route; a refused request stores nothing; an answer is written
// after its audit line; a *wire.Problem is turned into a status in one place, and any other error is `internal error` with the
// cause in the log; a panic is a 500 and never carries a body or a header into the log; a payload is written as the very bytes
// that are stored (DEC-33); no answer redirects. It runs no loop of its own.
//
// Refused: routes of later releases as stubs. They are unknown here, and answered with Go's plain 404.
package api
