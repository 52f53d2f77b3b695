package peer

import (
	"context"

	"google.golang.org/grpc/mem"
)

// Lent is an answer whose Body lies in memory that its owner wants back.
type Lent struct {
	Head []byte // goes before Body
	Body []byte
	Done func() // called when nobody looks at Body any more; an answer that could not be sent may be forgotten without it
}

// Lender is a Handler whose answers are Lent.
type Lender func(ctx context.Context, body []byte) (*Lent, error)

// slices are the answer as gRPC sends it. gRPC does not give back what is small.
func (l *Lent) slices() mem.BufferSlice {
	head := append([]byte{answerBody}, l.Head...)
	if mem.IsBelowBufferPoolingThreshold(cap(l.Body)) {
		head = append(head, l.Body...)
		l.Done()
		return mem.BufferSlice{mem.SliceBuffer(head)}
	}
	return mem.BufferSlice{mem.SliceBuffer(head), mem.NewBuffer(&l.Body, (*owner)(l))}
}

// owner hears from gRPC that it is done with a body.
type owner Lent

// Get is part of gRPC's interface of a pool; nobody takes memory from this one.
func (*owner) Get(size int) *[]byte { b := make([]byte, size); return &b }

// Put ends the loan.
func (o *owner) Put(*[]byte) { o.Done() }
