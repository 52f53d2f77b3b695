package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"narad.example/narad/wire"
)

var (
	ok      = []int{http.StatusOK}
	created = []int{http.StatusCreated}
	none    = []int{http.StatusNoContent}
)

func v1(segments ...string) []string { return append([]string{"v1"}, segments...) }

func flag(name string, value bool) url.Values {
	if !value {
		return nil
	}
	return url.Values{name: {"true"}}
}

// CreateTopic makes a topic.
func (c *Client) CreateTopic(ctx context.Context, req wire.CreateTopic) (wire.Topic, error) {
	var t wire.Topic
	_, err := c.do(ctx, request{method: http.MethodPost, path: v1("topics"), json: req, want: created, into: &t})
	return t, err
}

// Topic describes a topic; partition limits the statistics to one, nil is all.
func (c *Client) Topic(ctx context.Context, name string, partition *int) (wire.TopicDetail, error) {
	var d wire.TopicDetail
	q := url.Values{}
	if partition != nil {
		q.Set("partition", strconv.Itoa(*partition))
	}
	_, err := c.do(ctx, request{method: http.MethodGet, path: v1("topics", name), query: q, want: ok, into: &d})
	return d, err
}

// Topics lists a page of topics in name order; limit 0 is the server's default, token "" the first page.
func (c *Client) Topics(ctx context.Context, limit int, token string) (wire.TopicPage, error) {
	q := url.Values{}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if token != "" {
		q.Set("page_token", token)
	}
	var p wire.TopicPage
	_, err := c.do(ctx, request{method: http.MethodGet, path: v1("topics"), query: q, want: ok, into: &p})
	return p, err
}

// AlterTopic changes a topic.
func (c *Client) AlterTopic(ctx context.Context, name string, req wire.AlterTopic) (wire.TopicDetail, error) {
	var d wire.TopicDetail
	_, err := c.do(ctx, request{method: http.MethodPatch, path: v1("topics", name), json: req, want: ok, into: &d})
	return d, err
}

// Schemas is the history of a topic's schema.
func (c *Client) Schemas(ctx context.Context, name string) (wire.SchemaHistory, error) {
	var h wire.SchemaHistory
	_, err := c.do(ctx, request{method: http.MethodGet, path: v1("topics", name, "schema"), want: ok, into: &h})
	return h, err
}

// DeleteTopic deletes a topic; force also with unshipped records of remote children.
func (c *Client) DeleteTopic(ctx context.Context, name string, force bool) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: v1("topics", name), query: flag("force", force), want: none})
	return err
}

// AttachChild makes an existing topic a local child and returns the parent.
func (c *Client) AttachChild(ctx context.Context, parent string, req wire.AttachChild) (wire.Topic, error) {
	var t wire.Topic
	_, err := c.do(ctx, request{method: http.MethodPost, path: v1("topics", parent, "children"), json: req, want: ok, into: &t})
	return t, err
}

// AttachRemote makes a remote child and returns its stub.
func (c *Client) AttachRemote(ctx context.Context, parent string, req wire.AttachChild) (wire.Attached, error) {
	var a wire.Attached
	req.DryRun = false
	_, err := c.do(ctx, request{method: http.MethodPost, path: v1("topics", parent, "children"), json: req, want: created, into: &a})
	return a, err
}

// DryRunAttach asks what a remote attach would do.
func (c *Client) DryRunAttach(ctx context.Context, parent string, req wire.AttachChild) (wire.DryRun, error) {
	var d wire.DryRun
	req.DryRun = true
	_, err := c.do(ctx, request{method: http.MethodPost, path: v1("topics", parent, "children"), json: req, want: ok, into: &d})
	return d, err
}

// Children lists the children of a topic; with partitions each remote child's rows too.
func (c *Client) Children(ctx context.Context, parent string, partitions bool) (wire.Children, error) {
	var l wire.Children
	_, err := c.do(ctx, request{
		method: http.MethodGet, path: v1("topics", parent, "children"), query: flag("partitions", partitions), want: ok, into: &l,
	})
	return l, err
}

// Detach ends a child; a remote one with unshipped records only by force.
func (c *Client) Detach(ctx context.Context, parent, child string, force bool) error {
	_, err := c.do(ctx, request{
		method: http.MethodDelete, path: v1("topics", parent, "children", child), query: flag("force", force), want: none,
	})
	return err
}

func (c *Client) act(ctx context.Context, parent, child, action string, body any) (wire.Topic, error) {
	var t wire.Topic
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: v1("topics", parent, "children", child, action), json: body, want: ok, into: &t,
	})
	return t, err
}

// Pause stops a remote child and returns its stub.
func (c *Client) Pause(ctx context.Context, parent, child, reason string) (wire.Topic, error) {
	return c.act(ctx, parent, child, "pause", wire.PauseChild{Reason: reason})
}

// Resume lets a remote child go on and returns its stub; with acceptTarget it records the target topic that is there now.
func (c *Client) Resume(ctx context.Context, parent, child string, acceptTarget bool) (wire.Topic, error) {
	return c.act(ctx, parent, child, "resume", wire.ResumeChild{AcceptTarget: acceptTarget})
}

// Skip lets a remote child pass the record that it is stuck on, and returns its stub.
func (c *Client) Skip(ctx context.Context, parent, child string, partition int, offset int64) (wire.Topic, error) {
	return c.act(ctx, parent, child, "skip", wire.SkipRecord{Partition: &partition, Offset: &offset})
}
