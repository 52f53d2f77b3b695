package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"narad.example/narad/wire"
)

// ProduceOptions of a single produce.
type ProduceOptions struct {
	Key       string // empty is none; any bytes
	Partition *int
}

// Produce stores one payload of 1 byte to 1 MiB, byte for byte.
func (c *Client) Produce(ctx context.Context, topic string, payload []byte, o ProduceOptions) error {
	q := url.Values{}
	if o.Key != "" {
		q.Set("key", o.Key)
	}
	if o.Partition != nil {
		q.Set("partition", strconv.Itoa(*o.Partition))
	}
	if payload == nil {
		payload = []byte{}
	}
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: v1("topics", topic, "produce"), query: q, body: payload, want: []int{http.StatusAccepted},
	})
	return err
}

// message is one message of a batch.
type message struct {
	Key             string `json:"key,omitempty"`
	KeyEncoding     string `json:"key_encoding,omitempty"`
	Payload         string `json:"payload"`
	PayloadEncoding string `json:"payload_encoding"`
	Partition       *int   `json:"partition,omitempty"`
}

// ProduceBatch stores all records or none, byte for byte: each payload travels as base64. A negative Partition names none.
// ifTopicID, when not empty, is the incarnation that the records are meant for.
func (c *Client) ProduceBatch(ctx context.Context, topic, ifTopicID string, recs []wire.NewRecord) error {
	ms := make([]message, 0, len(recs))
	for _, r := range recs {
		m := message{Payload: base64.StdEncoding.EncodeToString(r.Payload), PayloadEncoding: wire.Base64}
		if utf8.Valid(r.Key) {
			m.Key = string(r.Key)
		} else {
			m.Key, m.KeyEncoding = base64.StdEncoding.EncodeToString(r.Key), wire.Base64
		}
		if r.Partition >= 0 {
			m.Partition = &r.Partition
		}
		ms = append(ms, m)
	}
	body, err := marshal(map[string][]message{"messages": ms})
	if err != nil {
		return err
	}
	return c.ProduceBody(ctx, topic, ifTopicID, body, "")
}

// ProduceBody sends a batch body that is encoded already; contentEncoding is "", zstd or gzip.
func (c *Client) ProduceBody(ctx context.Context, topic, ifTopicID string, body []byte, contentEncoding string) error {
	header := http.Header{"Content-Type": {"application/json"}}
	if ifTopicID != "" {
		header[wire.HeaderIfTopicID] = []string{ifTopicID}
	}
	if contentEncoding != "" {
		header["Content-Encoding"] = []string{contentEncoding}
	}
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: v1("topics", topic, "produce", "batch"), body: body, header: header, want: []int{http.StatusAccepted},
	})
	return err
}

// ConsumeOptions of a consume; the zero value takes from any partition and does not wait.
type ConsumeOptions struct {
	Partition *int
	Wait      time.Duration
}

func (o *ConsumeOptions) query() url.Values {
	q := url.Values{}
	if o.Partition != nil {
		q.Set("partition", strconv.Itoa(*o.Partition))
	}
	if o.Wait > 0 {
		q.Set("wait", o.Wait.String())
	}
	return q
}

// Consume leases one record, nil when there is none.
func (c *Client) Consume(ctx context.Context, topic string, o ConsumeOptions) (*wire.Message, error) {
	return c.one(ctx, topic, o.query())
}

// Replay reads one record without a lease, nil past the end.
func (c *Client) Replay(ctx context.Context, topic string, partition int, offset int64) (*wire.Message, error) {
	return c.one(ctx, topic, url.Values{"partition": {strconv.Itoa(partition)}, "offset": {strconv.FormatInt(offset, 10)}})
}

func (c *Client) one(ctx context.Context, topic string, q url.Values) (*wire.Message, error) {
	var m wire.Message
	a, err := c.do(ctx, request{
		method: http.MethodGet, path: v1("topics", topic, "consume"), query: q, want: []int{http.StatusOK, http.StatusNoContent}, into: &m,
	})
	if err != nil || a.status == http.StatusNoContent {
		return nil, err
	}
	return &m, nil
}

// ConsumeBatch leases up to limit records.
func (c *Client) ConsumeBatch(ctx context.Context, topic string, limit int, o ConsumeOptions) ([]wire.Message, error) {
	q := o.query()
	q.Set("max", strconv.Itoa(limit))
	var ms wire.Messages
	_, err := c.do(ctx, request{
		method: http.MethodGet, path: v1("topics", topic, "consume"), query: q, want: []int{http.StatusOK, http.StatusNoContent}, into: &ms,
	})
	return ms.Messages, err
}

// Settling is what to do with a lease.
type Settling string

// The ways to settle a lease.
const (
	Ack    Settling = "false"
	Extend Settling = "true"
	Nack   Settling = "0"
)

// Settle acks, extends or nacks one lease.
func (c *Client) Settle(ctx context.Context, topic, handle string, how Settling) error {
	q := url.Values{"receipt_handle": {handle}}
	if how != Ack {
		q.Set("extend", string(how))
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: v1("topics", topic, "ack"), query: q, want: none})
	return err
}

// SettleBatch settles up to 100 leases and answers one result for each, in order.
func (c *Client) SettleBatch(ctx context.Context, topic string, handles []string, how Settling) ([]wire.AckResult, error) {
	q := url.Values{}
	if how != Ack {
		q.Set("extend", string(how))
	}
	var out wire.AckResults
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: v1("topics", topic, "ack"), query: q, json: wire.AckBatch{ReceiptHandles: handles}, want: ok, into: &out,
	})
	return out.Results, err
}

// Payload is a message's payload as bytes. JSON comes back as it was stored, except for white space around it, which the answer
// has and a decoder drops. A JSON string is ambiguous in the API: it is what text that is no JSON comes back as, and also what a
// stored JSON string looks like; Payload takes it for text unless quoted.
func Payload(m *wire.Message, quoted bool) ([]byte, error) {
	if m.PayloadEncoding == "" && (quoted || len(m.Payload) == 0 || m.Payload[0] != '"') {
		return m.Payload, nil
	}
	var s string
	if err := json.Unmarshal(m.Payload, &s); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	if m.PayloadEncoding == wire.Base64 {
		return base64.StdEncoding.DecodeString(s)
	}
	return []byte(s), nil
}

// Key is a message's key as bytes, nil for none.
func Key(m *wire.Message) ([]byte, error) {
	if m.KeyEncoding == wire.Base64 {
		return base64.StdEncoding.DecodeString(m.Key)
	}
	if m.Key == "" {
		return nil, nil
	}
	return []byte(m.Key), nil
}
