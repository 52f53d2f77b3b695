// Package scenarios is the scenario language: YAML files that say what a chaos run does and what it must prove, and the files
// themselves, in folders by theme. README.md beside this file is the language's manual; schema.json lets an editor complete it.
//
// It promises that a file which Load takes can be run, and that a mistake is found before anything starts: every one is reported at once,
// with file, line, column, field and what is allowed there. Nothing is guessed: a number where a unit belongs, a field that the language
// does not have, a key given twice and an anchor are all errors.
//
// It runs no goroutine and reads nothing but the files it is given. It refused percentages of toxicity and jitter, because
// toxiproxy rolls them without our seed and a run could not be repeated (harness.md), and
// templates or includes, because a file must be readable alone.
package scenarios
