// Package access says who a request is from and what they may do: Basic auth against the users of the metadata, wrong-password
// throttling, grants and ownership, the administration of users, the first root admin (api.md Grants, Users; broker.md
// Security; BRK-08).
//
// It promises: a right password costs bcrypt once per process and hash, then about a microsecond, because verified credentials
// are remembered under an HMAC with a key that this process alone holds; a changed hash or a deleted user takes effect with the
// entry that changes it; a password is kept, logged and returned nowhere.
//
// It runs no loop. At most as many bcrypt computations run at once as there are processors, and one credential that several
// requests bring at once is computed once.
//
// Refused: throttling by address, since everybody may sit behind one; throttling a credential that is already verified, since
// then whoever guesses could lock the user out.
package access
