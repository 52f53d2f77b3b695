package cluster

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// identity tells a process from a later one with the same number. Started is the kernel's start time, "" where it cannot be
// read; then the process is taken to be alive for as long as the number is.
type identity struct {
	PID     int    `json:"pid"`
	Started string `json:"started,omitempty"`
}

// self is this process.
func self() identity { return identify(os.Getpid()) }

func identify(pid int) identity { return identity{PID: pid, Started: startTime(pid)} }

// statFields are the fields of the kernel's stat line from the third on, nil where there is none. The command in the second may
// hold spaces and brackets, so counting starts behind its last one.
func statFields(pid int) []string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
}

// startTime is when the kernel started the process, field 22.
func startTime(pid int) string {
	if fields := statFields(pid); len(fields) >= 20 {
		return fields[19]
	}
	return ""
}

// alive tells whether that very process still runs.
func (id identity) alive() bool {
	if id.PID <= 0 || errors.Is(syscall.Kill(id.PID, 0), syscall.ESRCH) {
		return false
	}
	return startTime(id.PID) == id.Started
}

// String is the form that a container's label carries.
func (id identity) String() string { return strconv.Itoa(id.PID) + ":" + id.Started }

func parseIdentity(s string) identity {
	pid, started, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(pid)
	if err != nil {
		return identity{}
	}
	return identity{PID: n, Started: started}
}

// journal is the file in the temporary folder by which the next harness finds what a killed one left.
type journal struct {
	path string

	mu   sync.Mutex // guards page and the file
	page page
}

// page is what the file says.
type page struct {
	Owner    identity   `json:"owner"`
	Children []identity `json:"children"`
	Folders  []string   `json:"folders"`
}

// folderPrefix opens the name of every data folder; Sweep removes no other.
const folderPrefix = "narad-chaos-data-"

func journalDir() string { return filepath.Join(os.TempDir(), "narad-chaos-journal") }

func newJournal() (*journal, error) {
	if err := os.MkdirAll(journalDir(), 0o755); err != nil {
		return nil, fmt.Errorf("%w: journal: %w", ErrTrouble, err)
	}
	me := self()
	name := fmt.Sprintf("%d-%s.json", me.PID, hex.EncodeToString(random(6)))
	j := &journal{path: filepath.Join(journalDir(), name), page: page{Owner: me}}
	return j, j.save()
}

// save writes the page whole. Callers hold mu, or are alone.
func (j *journal) save() error {
	body, err := json.Marshal(j.page)
	if err != nil {
		return fmt.Errorf("%w: journal: %w", ErrTrouble, err)
	}
	if err = os.WriteFile(j.path+".new", body, 0o600); err != nil {
		return fmt.Errorf("%w: journal: %w", ErrTrouble, err)
	}
	if err = os.Rename(j.path+".new", j.path); err != nil {
		return fmt.Errorf("%w: journal: %w", ErrTrouble, err)
	}
	return nil
}

// child notes a process, and forgets those that are gone.
func (j *journal) child(pid int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	living := j.page.Children[:0]
	for _, c := range j.page.Children {
		if c.alive() {
			living = append(living, c)
		}
	}
	j.page.Children = append(living, identify(pid))
	return j.save()
}

// folder makes a new data folder and notes it.
func (j *journal) folder() (string, error) {
	dir, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return "", fmt.Errorf("%w: data folder: %w", ErrTrouble, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.page.Folders = append(j.page.Folders, dir)
	return dir, j.save()
}

// close removes the folders and the journal.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.page.undo(j.path)
}

func (p *page) undo(path string) error {
	var errs error
	for _, dir := range p.Folders {
		if strings.HasPrefix(filepath.Base(dir), folderPrefix) {
			errs = errors.Join(errs, os.RemoveAll(dir))
		}
	}
	if errs == nil {
		errs = os.Remove(path)
	}
	if errs != nil {
		return fmt.Errorf("%w: journal: %w", ErrTrouble, errs)
	}
	return nil
}

// sweepJournals ends the processes and removes the folders of every harness that is gone.
func sweepJournals() error {
	files, err := os.ReadDir(journalDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: journal: %w", ErrTrouble, err)
	}
	var errs error
	for _, f := range files {
		path := filepath.Join(journalDir(), f.Name())
		body, rerr := os.ReadFile(path)
		if rerr != nil {
			continue // its harness has just closed it
		}
		var p page
		if json.Unmarshal(body, &p) != nil || p.Owner.alive() {
			continue
		}
		for _, c := range p.Children {
			if c.Started != "" && c.alive() { // without a start time the number may be another's by now
				errs = errors.Join(errs, syscall.Kill(c.PID, syscall.SIGKILL))
			}
		}
		errs = errors.Join(errs, p.undo(path))
	}
	return errs
}
