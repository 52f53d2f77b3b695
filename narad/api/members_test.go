package api

import (
	"context"
	"fmt"
	"testing"

	"narad.example/narad/wire"
)

// members is the fake behind the routes of members.
type members struct{ w *world }

func (m members) Members(_ context.Context, detail bool) (wire.Members, error) {
	v := wire.Member{ID: "n1", Status: "alive", Voter: true, DecommissionBlocked: []wire.Reason{{Code: "backlog", Message: "7 wait"}}}
	if detail {
		v.Partitions = []wire.MemberTopic{{Topic: "orders", Partitions: []int{0, 2}}}
	}
	return wire.Members{Members: []wire.Member{v}}, m.w.fail
}

func (m members) Plan(_ context.Context, id string) (wire.Decommission, error) {
	return wire.Decommission{Member: id, Reasons: []string{"owner_dead"}, OwnedPartitions: 2}, m.w.fail
}

func (m members) Decommission(_ context.Context, id string) error {
	if id == "n3" {
		return wire.Refuse(wire.Conflict, "member n3 cannot be decommissioned now").With("reasons", []string{"no_receivers"})
	}
	return m.w.change(fmt.Sprint("drain ", id))
}

func (m members) Cancel(_ context.Context, id string) error {
	return m.w.change(fmt.Sprint("stay ", id))
}

func (m members) Forget(_ context.Context, id string) (wire.Forgotten, error) {
	return wire.Forgotten{ID: id, Voter: true}, m.w.change(fmt.Sprint("forget ", id))
}

// covers: BRK-07, BRK-14
func TestMemberRoutes(t *testing.T) {
	do := func(user, method, rest string) req {
		return req{user: user, method: method, path: "/v1/cluster/members" + rest}
	}
	check(t, []row{
		{do("", "GET", ""), 200, `{"members":[{"id":"n1","addr":"","status":"alive","draining":false,"owned_partitions":0,"outbound_moves":0,"voter":true,` +
			`"leader":false,"heartbeat_age_seconds":null,"decommission_blocked":[{"code":"backlog","message":"7 wait"}]}]}`, "", ""},
		{do("", "GET", "?detail=true"), 200, `"partitions":[{"topic":"orders","partitions":[0,2]}]`, "", ""},
		{do("", "GET", "?detail=yes"), 400, "detail must be true or false", "", ""},
		{do("writer", "GET", ""), 403, "admin only", "", ""},
		{do("", "POST", "/n2/decommission"), 204, "", "drain n2", "cluster.decommission n2: ok"},
		{do("", "POST", "/n3/decommission"), 409, `"reasons":["no_receivers"]`, "", "cluster.decommission n3: rejected"},
		{do("", "POST", "/n2/decommission?dry_run=true"), 200,
			`{"member":"n2","would_decommission":false,"reasons":["owner_dead"],"voter":false,"owned_partitions":2,"inbound_moves":0}`, "", "cluster.decommission n2: ok"},
		{do("", "POST", "/n2/decommission?dry_run=1"), 400, "dry_run", "", "cluster.decommission n2: rejected"},
		{do("writer", "POST", "/n2/decommission"), 403, "admin only", "", "cluster.decommission n2: denied"},
		{do("", "DELETE", "/n2/decommission"), 204, "", "stay n2", "cluster.decommission.cancel n2: ok"},
		{do("writer", "DELETE", "/n2/decommission"), 403, "admin only", "", "cluster.decommission.cancel n2: denied"},
		{do("", "POST", "/n9/forget"), 200, `{"id":"n9","voter":true}`, "forget n9", "cluster.forget n9: ok"},
		{do("writer", "POST", "/n9/forget"), 403, "admin only", "", "cluster.forget n9: denied"},
	})
}
