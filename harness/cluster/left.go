package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	moby "github.com/moby/moby/client"

	"narad.example/harness/spawn"
)

// Leftovers is a rig that can look for what its Close left.
type Leftovers interface {
	// Left names everything that the rig started or made and that is still there: processes, with all that they started in their turn, containers,
	// networks and folders. It is called once, after Close. An error says that it could not look.
	Left(ctx context.Context) ([]string, error)
}

// Left is Leftovers. Processes that it finds are killed.
func (r *processRig) Left(context.Context) ([]string, error) {
	var left []string
	for _, c := range r.own {
		for _, first := range c.started() {
			for _, pid := range spawn.Members(first) {
				left = append(left, fmt.Sprintf("process %d of %s", pid, c.name))
			}
			_ = spawn.KillGroup(first) // mostly nobody is there
		}
	}
	if r.journal != nil {
		left = append(left, r.journal.left()...)
	}
	return left, nil
}

// left names the folders of a rig, and the journal itself, that are still there.
func (j *journal) left() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var left []string
	for _, path := range append([]string{j.path}, j.page.Folders...) {
		if _, err := os.Lstat(path); err == nil {
			left = append(left, path)
		}
	}
	return left
}

// Left is Leftovers. It leaves what it finds to the next Sweep.
func (r *containerRig) Left(ctx context.Context) ([]string, error) {
	e, err := engine(ctx)
	if err != nil {
		return nil, err
	}
	mine := make(moby.Filters).Add("label", labelSession+"="+r.labels[labelSession])
	var left []string
	boxes, err := e.ContainerList(ctx, moby.ContainerListOptions{All: true, Filters: mine})
	for i := range boxes.Items {
		left = append(left, fmt.Sprintf("container of %s", boxes.Items[i].Labels[labelNode]))
	}
	nets, nerr := e.NetworkList(ctx, moby.NetworkListOptions{Filters: mine})
	for i := range nets.Items {
		left = append(left, "network "+nets.Items[i].Name)
	}
	if err = errors.Join(err, nerr, e.Close()); err != nil {
		return left, fmt.Errorf("%w: looking for what is left: %w", ErrTrouble, err)
	}
	return left, nil
}
