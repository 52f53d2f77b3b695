// Package house holds the rules of the house as tests: which package may import which, how large a file and a function may
// grow, and that no file names a machine. It has no code of its own.
package house
