//go:build chaos

package main

const tagged = true // by chaos
