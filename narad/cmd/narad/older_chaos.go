//go:build chaos

package main

import "os"

// older has the node pose as a release before remotes (node.Options.Older) when the environment says so: for clusters of two releases in tests.
func older() bool { return os.Getenv("NARAD_CHAOS_OLDER") != "" }
