//go:build !chaos

package main

const tagged = false // by chaos
