package target

import (
	"context"
	"net/http"
	"slices"

	"narad.example/narad/wire"
)

// RowLoop is the verdict of a check that saw a remote child on the target topic (RUN-03).
const RowLoop = "RUN-03"

// Check reads the children listing of a target topic and compares the topic with the recorded ID, which is empty for a link to a
// topic older than IDs. row is RowNone when the link may go on, RowLoop when the topic has a remote child, RowReplaced when it
// is another topic than the recorded one (RUN-03, RUN-04). A target that serves no parent_id is asked for the topic's own id
// (RUN-09), so a check can be two requests. The error is an *Error; a missing topic is ANS-10.
func Check(ctx context.Context, c Doer, topic, recorded string) (row string, err error) {
	l, err := Listing(ctx, c, topic)
	if err != nil {
		return "", err
	}
	if Loops(l) {
		return RowLoop, nil
	}
	id := l.ParentID
	if id == "" {
		info, topicErr := Topic(ctx, c, topic)
		switch {
		case topicErr != nil:
			return "", topicErr
		case !info.Exists:
			return "", &Error{
				Reading: Reading{Row: "ANS-10", Status: http.StatusNotFound, UploadBegan: true},
				Class:   string(wire.TargetMissing), State: wire.TargetMissing,
			}
		}
		id = info.ID
	}
	if id != recorded {
		return RowReplaced, nil
	}
	return RowNone, nil
}

// Loops tells whether a listing has a remote child (TGT-06).
func Loops(l wire.Children) bool {
	return slices.ContainsFunc(l.Children, func(c wire.ChildEntry) bool { return c.RemoteEntry != nil && c.Remote != "" })
}
