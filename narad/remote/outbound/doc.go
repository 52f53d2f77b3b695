// Package outbound is the HTTP client of one remote (seed: The outbound transport; NET-01 to NET-07). A Client sends one
// request at a time on a connection and answers with the status, the headers and at most 64 KiB of the body.
//
// It promises:
//
//   - https only, HTTP/1.1 only, TLS 1.2 or later with X25519MLKEM768 and X25519, the chain and the name always verified.
//   - No proxy, no redirect, no cookie, no decompression: what the target answered is what the caller sees.
//   - Every dial passes the Guard, once for the URL and once for each address after name resolution.
//   - A request goes out at most once. Only when not one byte of it has left may it move to another connection.
//   - A connection in doubt takes no further request (DEC-45): the answer came before the upload ended, the request timed out,
//     bytes came unasked, the answer was cut, too long or carried another request's ID.
//   - A Failure names its class and nothing else: no host, URL, header or body reaches an error text (LOG-01, CRD-13).
//
// Loops: each connection has one goroutine, its read loop, which ends when the connection is closed. Client.Close closes
// the idle ones, the others close after their request, and Client.Wait waits for them all. Idle connections are
// closed by timers.
//
// Refused alternative: net/http.Transport. It writes bytes that come unasked into the standard log, which would be the target's
// text in ours; it puts a connection back into its pool before the caller can tell that the answer came before the upload ended;
// it repeats a request on its own in some cases; and it cannot say whether a part of the body may have left. Parsing
// of answers is still the standard library's (http.ReadResponse).
package outbound
