package wire

// Actions of a grant.
const (
	ActionProduce = "produce"
	ActionConsume = "consume"
	ActionCreate  = "create"
	ActionAdmin   = "admin"
)

// Grant allows an action on the topics that a pattern matches: a name, or a prefix ending in one '*'. Admin takes none.
type Grant struct {
	Action   string   `json:"action"`
	Patterns []string `json:"patterns,omitempty"`
}

// User is a user as answers show it.
type User struct {
	Username    string  `json:"username"`
	Grants      []Grant `json:"grants,omitempty"`
	Root        bool    `json:"root,omitempty"`
	CreatedAtMS int64   `json:"created_at_ms"`
	UpdatedAtMS int64   `json:"updated_at_ms"`
}

// CreateUser is the body of POST /v1/users.
type CreateUser struct {
	Username string  `json:"username"`
	Password string  `json:"password"`
	Grants   []Grant `json:"grants,omitempty"`
}

// ReplaceGrants is the body of PUT /v1/users/{u}/grants.
type ReplaceGrants struct {
	Grants []Grant `json:"grants"`
}

// ChangePassword is the body of PUT /v1/users/{u}/password.
type ChangePassword struct {
	NewPassword     string `json:"new_password"`
	CurrentPassword string `json:"current_password,omitempty"`
}
