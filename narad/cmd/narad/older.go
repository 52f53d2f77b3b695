//go:build !chaos

package main

// older tells whether the node poses as an older release. This build never does; that of the tag chaos can (older_chaos.go).
func older() bool { return false }
