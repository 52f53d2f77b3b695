package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"narad.example/narad/wire"
)

// action says what a step's action is about, which fields it takes beside that, and the status of its success.
type action struct {
	success int
	remote  bool // it is about a remote
	member  bool // it is about a node of the source; else about a link
	takes   []string
	to      []string // what to may be; then it is wanted
	real    bool     // it is done on the target, which must be no fake
}

var actions = map[string]action{
	"attach":          {success: 201, takes: []string{"says"}},
	"detach":          {success: 204, takes: []string{"force"}},
	"pause":           {success: 200, takes: []string{"reason"}},
	"resume":          {success: 200, takes: []string{"accept_target"}},
	"skip":            {success: 200, takes: []string{"partition", "offset"}},
	"test":            {success: 200, takes: []string{"topic", "shows"}},
	"set_limits":      {success: 200, remote: true, takes: []string{"limits"}},
	"delete_remote":   {success: 204, remote: true, takes: []string{"force"}},
	"create_remote":   {success: 201, remote: true, takes: []string{"says"}},
	"target_password": {success: 204, remote: true, takes: []string{"to"}},
	"rotate_password": {success: 200, remote: true},
	"remote_ca":       {success: 200, remote: true, takes: []string{"to", "no_password"}},
	"target_topic":    {success: 200, takes: []string{"to"}, to: []string{"deleted", "created", "recreated", "delay_child", "remote_child", "alone"}, real: true},
	"target_user":     {success: 200, remote: true, takes: []string{"to"}, to: []string{"deleted", "created"}, real: true},
	"target_grant":    {success: 200, remote: true, takes: []string{"to"}, to: []string{"removed", "restored"}, real: true},
	"recreate_parent": {success: 201},
	"read_back":       {success: 200},
	"look":            {success: 200, takes: []string{"shows"}},
	"reencrypt":       {success: 200, remote: true, takes: []string{"shows"}},
	"move":            {success: 202, takes: []string{"partition", "node"}},
	"join":            {success: 200, member: true},
	"decommission":    {success: 204, member: true},
}

// stepFields are the fields of a step that not every action takes.
var stepFields = []string{"link", "remote", "to", "force", "reason", "accept_target", "partition", "offset", "limits", "no_password", "shows", "node", "says", "topic"}

func (c *checker) steps() {
	byStep := map[string]bool{}
	for _, l := range c.s.Links {
		if l.Attach == "step" {
			byStep[l.Child] = false
		}
	}
	for i := range c.s.Steps {
		s, path := &c.s.Steps[i], fmt.Sprintf("steps[%d]", i)
		a, known := actions[s.Action]
		if !known {
			if !c.given(path + ".action") {
				c.say(path+".action", "is missing; %s", allowed(slices.Sorted(maps.Keys(actions))))
			}
			continue // the decoder has said so
		}
		c.step(s, &a, path)
		if s.Action == "attach" {
			byStep[s.Link] = true
		}
	}
	for child, attached := range byStep {
		if !attached {
			c.say("links", "%s says attach: step, but no step attaches it", child)
		}
	}
}

// move is of a partition of the link's parent, from its owner to another node of the source.
func (c *checker) move(s *Step, path string) {
	if s.Partition == nil {
		c.say(path+".partition", "is missing: a move names the partition")
	}
	if c.s.Source.Nodes < 3 {
		c.say(path+".action", "a source of one node moves nothing: say source: {nodes: 3}")
	}
	if s.Node != "" && !strings.HasPrefix(s.Node, "source-") {
		c.say(path+".node", "wants a node of the source, such as source-2")
	}
}

// member is a node of the source that joins, one of its spares, or that is decommissioned.
func (c *checker) member(s *Step, path string) {
	first := c.s.Source.Nodes
	nodes := c.nodes[:first+max(0, c.s.Source.Spares)]
	if s.Action == "join" {
		nodes = nodes[first:]
	}
	if len(nodes) == 0 || c.s.Source.Spares == 0 {
		c.say(path+".action", "%s wants a source with spares: say source: {nodes: 3, spares: 1}", s.Action)
		return
	}
	c.among(path+".node", "node", s.Node, nodes)
}

func (c *checker) step(s *Step, a *action, path string) {
	about := "link"
	switch {
	case a.remote:
		about = "remote"
		c.among(path+".remote", "remote", s.Remote, slices.Sorted(maps.Keys(c.s.Remotes)))
	case a.member:
		about = "node"
		c.member(s, path)
	default:
		c.among(path+".link", "child", s.Link, slices.Sorted(maps.Keys(c.links)))
	}
	takes := append([]string{about}, a.takes...)
	for _, field := range stepFields {
		if c.given(path+"."+field) && !slices.Contains(takes, field) {
			c.say(path+"."+field, "%s does not take it; %s", s.Action, allowed(takes))
		}
	}
	if s.Expect < 100 || s.Expect > 599 {
		c.say(path+".expect", "wants a status, 100 to 599")
	}
	if s.Says != "" && s.Expect < 300 {
		c.say(path+".says", "is for a refusal: say what status it has")
	}
	if a.to != nil && !slices.Contains(a.to, s.To) {
		c.say(path+".to", "wants one of these; %s", allowed(a.to))
	}
	if a.real && c.s.Target.Fake != nil {
		c.say(path+".action", "a fake has neither users nor topics that change")
	}
	switch s.Action {
	case "look":
		c.looks(s, path)
	case "test", "reencrypt":
		c.answered(s, path)
	case "move":
		c.move(s, path)
	case "pause":
		if len(s.Reason) > wire.MaxPauseReason || strings.ContainsFunc(s.Reason, func(r rune) bool { return r < ' ' || r > '~' }) {
			c.say(path+".reason", "wants at most %d printable bytes", wire.MaxPauseReason)
		}
	case "skip":
		if (s.Partition == nil) != (s.Offset == nil) {
			c.say(path, "partition and offset come together; without both it skips the record that the link is blocked on")
		}
	case "set_limits":
		if s.Limits == nil || *s.Limits == (Limits{}) {
			c.say(path+".limits", "is missing: set_limits names a limit at least")
		} else {
			c.limits(path+".limits", s.Limits)
		}
	case "remote_ca":
		if s.To == "" {
			c.say(path+".to", "is missing; allowed: other, recorded, both")
		}
	case "target_password", "rotate_password":
		if s.To == "both" {
			c.say(path+".to", "allowed: other, recorded")
		}
		if s.Action == "target_password" && s.To == "" {
			c.say(path+".to", "is missing; allowed: other, recorded")
		}
		if c.s.Target.Fake != nil {
			c.say(path+".action", "a fake has no users")
		}
	}
}
