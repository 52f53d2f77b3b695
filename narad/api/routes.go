package api

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"

	"narad.example/narad/audit"
)

// answer is what a handler answers with when it refuses nothing.
type answer struct {
	status int
	body   any    // JSON
	raw    []byte // JSON that is written as it is; instead of body
}

type handler func(c *call) (answer, error)

// route is one route. A route with an event is audited; its target is the path's members named in target until the handler
// knows better.
type route struct {
	pattern string
	handle  handler
	event   string
	target  []string
}

func routes() []route {
	topic, child, user, remote := []string{"topic"}, []string{"topic", "child"}, []string{"user"}, []string{"remote"}
	moved, member := []string{"topic", "partition"}, []string{"member"}
	return []route{
		{pattern: "GET /healthz", handle: healthz},
		{pattern: "GET /readyz", handle: readyz},

		{pattern: "POST /v1/topics", handle: createTopic, event: "topic.create"},
		{pattern: "GET /v1/topics", handle: listTopics},
		{pattern: "GET /v1/topics/{topic}", handle: getTopic},
		{pattern: "PATCH /v1/topics/{topic}", handle: alterTopic, event: "topic.alter", target: topic},
		{pattern: "DELETE /v1/topics/{topic}", handle: deleteTopic, event: "topic.delete", target: topic},

		{pattern: "GET /v1/topics/{topic}/schema", handle: listSchemas},

		{pattern: "POST /v1/topics/{topic}/children", handle: attach, event: "topic.attach", target: topic},
		{pattern: "GET /v1/topics/{topic}/children", handle: listChildren},
		{pattern: "DELETE /v1/topics/{topic}/children/{child}", handle: detach, event: "topic.detach", target: child},
		{pattern: "POST /v1/topics/{topic}/children/{child}/pause", handle: pauseChild, event: "remote_child.pause", target: child},
		{pattern: "POST /v1/topics/{topic}/children/{child}/resume", handle: resumeChild, event: "remote_child.resume", target: child},
		{pattern: "POST /v1/topics/{topic}/children/{child}/skip", handle: skipRecord, event: "remote_child.skip", target: child},

		{pattern: "POST /v1/topics/{topic}/produce", handle: produce},
		{pattern: "POST /v1/topics/{topic}/produce/batch", handle: produceBatch},
		{pattern: "GET /v1/topics/{topic}/consume", handle: consume},
		{pattern: "POST /v1/topics/{topic}/ack", handle: ack},
		// Without this a HEAD would be a consume whose record nobody gets.
		{pattern: "HEAD /v1/topics/{topic}/consume", handle: func(c *call) (answer, error) {
			c.Header().Set("Allow", http.MethodGet)
			return answer{status: http.StatusMethodNotAllowed}, nil
		}},

		{pattern: "POST /v1/users", handle: createUser, event: "user.create"},
		{pattern: "GET /v1/users", handle: listUsers},
		{pattern: "GET /v1/users/{user}", handle: getUser},
		{pattern: "DELETE /v1/users/{user}", handle: deleteUser, event: "user.delete", target: user},
		{pattern: "PUT /v1/users/{user}/grants", handle: replaceGrants, event: "user.grants", target: user},
		{pattern: "PUT /v1/users/{user}/password", handle: changePassword, event: "user.password", target: user},

		{pattern: "GET /v1/cluster/members", handle: listMembers},
		{pattern: "POST /v1/cluster/members/{member}/decommission", handle: decommission, event: "cluster.decommission", target: member},
		{pattern: "DELETE /v1/cluster/members/{member}/decommission", handle: cancelDecommission, event: "cluster.decommission.cancel", target: member},
		{pattern: "POST /v1/cluster/members/{member}/forget", handle: forgetMember, event: "cluster.forget", target: member},
		{pattern: "GET /v1/cluster/moves", handle: listMoves},
		{pattern: "POST /v1/cluster/moves/{topic}/{partition}/abort", handle: abortMove, event: "cluster.move.abort", target: moved},

		{pattern: "POST /v1/remotes", handle: createRemote, event: "remote.create"},
		{pattern: "GET /v1/remotes", handle: listRemotes, event: "remote.list"},
		{pattern: "GET /v1/remotes/{remote}", handle: getRemote, event: "remote.get", target: remote},
		{pattern: "PATCH /v1/remotes/{remote}", handle: patchRemote, event: "remote.update", target: remote},
		{pattern: "DELETE /v1/remotes/{remote}", handle: deleteRemote, event: "remote.delete", target: remote},
		{pattern: "POST /v1/remotes/{remote}/test", handle: testRemote, event: "remote.test", target: remote},
		{pattern: "POST /v1/cluster/reencrypt-remotes", handle: reencryptRemotes, event: "remote.reencrypt"},
	}
}

// serve is the way of every request to a known route: guard, handler, audit line, answer.
func (s *Server) serve(rt route) http.Handler {
	_, label, _ := strings.Cut(rt.pattern, " ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.r, c.route, c.event = r, label, rt.event
		c.remoteEvent = strings.HasPrefix(rt.event, "remote.") || strings.HasPrefix(rt.event, "remote_child.")
		if rt.event != "" {
			var names []string
			for _, member := range rt.target {
				names = append(names, r.PathValue(member))
			}
			c.target = strings.Join(names, "/")
		}
		a, err := c.run(rt.handle)
		if c.event != "" {
			status := a.status
			if err != nil {
				status = statusOf(c, err)
			}
			s.o.Audit.Write(r.Context(), audit.Line{
				Event: c.event, Actor: c.actor(), Target: cut(c.target, 400), Outcome: c.outcome(status, err), Status: status,
				RequestID: c.requestID, Extra: c.extra,
			})
		}
		if err != nil {
			c.refuse(err)
			return
		}
		c.answer(a)
	})
}

// run runs the guard and the handler. A panic becomes an error here, so that also the request that caused it is audited.
func (c *call) run(h handler) (a answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			c.s.logPanic(c, v)
			a, err = answer{}, errPanic
		}
	}()
	if p := c.guard(); p != nil {
		return answer{}, p
	}
	return h(c)
}

// errPanic is answered as an internal error; its cause is in the log already.
var errPanic = errors.New("api: panic")

// panicText describes a panic without quoting what is not the runtime's own.
func panicText(v any) string {
	if e, ok := v.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", v)
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
