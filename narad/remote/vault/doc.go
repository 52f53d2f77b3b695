// Package vault keeps the credentials of remotes (seed: Credentials; CRD-01 to CRD-13). Keys seals and opens passwords; Vault
// is the node's cache of ready clients.
//
// It promises:
//
//   - A password exists in plain only while it is sealed, and on a node's way from ciphertext to a ready Authorization value; the
//     slices that held it are overwritten afterwards. Nothing here logs, and no error carries a password, key or ciphertext.
//   - A ciphertext opens only beside the name, ID, canonical URL, username and trust anchor that it was sealed for.
//   - Each node opens a ciphertext once per credential version. A change of limits builds a new client without opening
//     anything, a re-encrypt does nothing at all (DEC-32), and an entry of a deleted remote is dropped with its idle connections.
//   - Entry is never older than the metadata of this node: a reader that finds the remotes version moved rebuilds first.
//
// Loops: Run, one per node, which ends with its context, closes every client and waits for their connections.
//
// Refused: opening a password when a request needs it, which would put cryptography on the send path (SND-13).
package vault
