package api

import (
	"log/slog"
	"net/http"

	"narad.example/narad/access"
	"narad.example/narad/wire"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

func createTopic(c *call) (answer, error) {
	var req wire.CreateTopic
	if err := c.decode(maxBody, wire.TooLarge, &req); err != nil {
		return answer{}, err
	}
	c.target = req.Name
	req.Owner = "" // known and ignored
	if !c.id.Granted(wire.ActionCreate, req.Name) {
		return answer{}, errNoGrant
	}
	if req.Parent != "" {
		if _, err := c.topic(req.Parent, c.id.Owns); err != nil {
			return answer{}, err
		}
	}
	t, err := c.s.o.Topics.Create(c.ctx(), c.id.Name, req)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusCreated, body: shown(c, t)}, nil
}

// shown hides from all but admins who made a link and who paused it (LST-07).
func shown(c *call, t wire.Topic) wire.Topic {
	if t.Remote == nil || c.id.Admin {
		return t
	}
	link := *t.Remote
	link.CreatedBy, link.PausedBy = "", ""
	t.Remote = &link
	return t
}

func listTopics(c *call) (answer, error) {
	limit := defaultPage
	n, present, err := c.number("limit", 64)
	if err != nil {
		return answer{}, err
	}
	if present {
		if n < 1 {
			return answer{}, wire.Refuse(wire.Invalid, "bad limit")
		}
		limit = int(min(n, maxPage))
	}
	token, _, err := c.param("page_token")
	if err != nil {
		return answer{}, err
	}
	page, err := c.s.o.Topics.List(c.ctx(), limit, token, c.visible)
	if err != nil {
		return answer{}, err
	}
	if page.Topics == nil {
		page.Topics = []wire.Topic{}
	}
	for i := range page.Topics {
		page.Topics[i] = shown(c, page.Topics[i])
	}
	return answer{status: http.StatusOK, body: page}, nil
}

// visible tells whether the caller may read a listed topic.
func (c *call) visible(t wire.Topic) bool {
	seen := access.Topic{Name: t.Name, Owner: t.Owner}
	if t.Remote != nil {
		seen.Owner = c.s.o.Control.OwnerOf(t.Parent)
	}
	return c.id.Reads(&seen)
}

func getTopic(c *call) (answer, error) {
	t, err := c.topic(c.r.PathValue("topic"), c.id.Reads)
	if err != nil {
		return answer{}, err
	}
	partition, err := c.partition()
	if err != nil {
		return answer{}, err
	}
	return detail(c)(c.s.o.Topics.Get(c.ctx(), t.Name, partition))
}

// detail answers a topic with its details.
func detail(c *call) func(d wire.TopicDetail, err error) (answer, error) {
	return func(d wire.TopicDetail, err error) (answer, error) {
		if err != nil {
			return answer{}, err
		}
		d.Topic = shown(c, d.Topic)
		if d.PartitionStats == nil {
			d.PartitionStats = []wire.PartitionStats{}
		}
		return answer{status: http.StatusOK, body: d}, nil
	}
}

func alterTopic(c *call) (answer, error) {
	t, err := c.topic(c.r.PathValue("topic"), c.id.Owns)
	if err != nil {
		return answer{}, err
	}
	var req wire.AlterTopic
	if err = c.decode(maxBody, wire.TooLarge, &req); err != nil {
		return answer{}, err
	}
	settings := req.RetentionMS != nil || req.MaxInFlightPerPartition != nil || req.MaxAckedAheadPerPartition != nil ||
		req.Partitions != nil
	switch {
	case string(req.Schema) == "null":
		return answer{}, wire.Refuse(wire.Invalid, "a schema cannot be removed")
	case req.Schema != nil && !settings:
		c.event = "topic.schema"
	case req.Schema == nil && !settings:
		return answer{}, wire.Refuse(wire.Invalid, "nothing to change")
	}
	return detail(c)(c.s.o.Topics.Alter(c.ctx(), t.Name, req))
}

func listSchemas(c *call) (answer, error) {
	t, err := c.topic(c.r.PathValue("topic"), c.id.Reads)
	if err != nil {
		return answer{}, err
	}
	h, err := c.s.o.Topics.Schemas(c.ctx(), t.Name)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: h}, nil
}

func deleteTopic(c *call) (answer, error) {
	t, err := c.topic(c.r.PathValue("topic"), c.id.Owns)
	if err != nil {
		return answer{}, err
	}
	force, err := readForce(c)
	if err != nil {
		return answer{}, err
	}
	if t.Remote != "" || c.s.o.Control.Linked(t.Name) { // as this replica shows it (WRT-07)
		c.remoteEvent = true
		c.patient()
		err = c.s.o.Links.DeleteTopic(c.ctx(), c.caller(), t.Name, force)
	} else {
		err = c.s.o.Topics.Delete(c.ctx(), t.Name)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

// readForce reads the parameter of a delete and puts it into the audit line.
func readForce(c *call) (bool, error) {
	force, err := c.flag("force", false)
	if force {
		c.extra = append(c.extra, slog.Bool("force", true))
	}
	return force, err
}
