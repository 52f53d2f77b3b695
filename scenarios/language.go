package scenarios

// Scenario is one scenario file. A field's tag is its name in the file; README.md says what each does.
type Scenario struct {
	File     string            `yaml:"-"`
	Name     string            `yaml:"name"`
	Covers   []string          `yaml:"covers"` // requirement IDs (HAR-04)
	Backends *Backends         `yaml:"backends,omitempty"`
	Source   Cluster           `yaml:"source"`
	Target   Target            `yaml:"target"`
	Topics   map[string]Topic  `yaml:"topics"` // on the source, and with the same partitions on the target
	Remotes  map[string]Remote `yaml:"remotes"`
	Links    []Link            `yaml:"links"`
	Load     []Traffic         `yaml:"load"`
	Faults   []Fault           `yaml:"faults,omitempty"`
	Steps    []Step            `yaml:"steps,omitempty"`
	Expect   Expect            `yaml:"expect"`
	Relax    []Relax           `yaml:"relax,omitempty"`
	Matrix   map[string]any    `yaml:"matrix,omitempty"` // expanded by LoadAll, and absent from then on
	Cell     map[string]string `yaml:"cell,omitempty"`   // of an expanded one: the value's name by variable
}

// Backends restricts where a scenario runs; elsewhere it is reported as not run, with the reason.
type Backends struct {
	Only   []string `yaml:"only" enum:"container,process,sim"`
	Reason string   `yaml:"reason"`
}

// Cluster is one side. Config overrides the nodes' configuration (broker.md, Configuration), block by block. Spares are nodes that no
// first member knows; a join starts one. Older are the numbers of nodes that pose as a release before remotes until a fault upgrades them.
type Cluster struct {
	Nodes  int            `yaml:"nodes"`
	Spares int            `yaml:"spares,omitempty"`
	Older  []int          `yaml:"older,omitempty"`
	Config map[string]any `yaml:"config,omitempty"`
}

// Target is a real cluster, or a scripted fake.
type Target struct {
	Nodes  int            `yaml:"nodes,omitempty"`
	Older  []int          `yaml:"older,omitempty"`
	Config map[string]any `yaml:"config,omitempty"`
	Fake   *Fake          `yaml:"fake,omitempty"`
}

// Fake scripts a fake target: the first step that matches a request and is not used up answers it. What no step matches is
// answered as a healthy target does.
type Fake struct {
	Steps []FakeStep `yaml:"steps"`
}

// FakeStep is one step of a fake's script.
type FakeStep struct {
	Name   string   `yaml:"name"`
	When   FakeWhen `yaml:"when"`
	Answer string   `yaml:"answer"` // a name of the fakes' catalogue
	With   FakeWith `yaml:"with,omitempty"`
	Times  int      `yaml:"times,omitempty"`  // how often it answers; it must be used up
	Always bool     `yaml:"always,omitempty"` // instead of times: it answers to the end, once at least
}

// FakeWhen says which requests a step answers; an absent member matches all.
type FakeWhen struct {
	Route      string `yaml:"route" enum:"produce,topic,children,consume,users,other,any"`
	Nth        int    `yaml:"nth,omitempty"` // not before the nth request that the other members match, counted from 1
	Topic      string `yaml:"topic,omitempty"`
	Credential string `yaml:"credential,omitempty"` // a user's name, or none
	Record     string `yaml:"record,omitempty"`     // a record's key, or words in its payload; nrd- is any record of the load
}

// FakeWith are the parameters of an answer.
type FakeWith struct {
	Status     int               `yaml:"status,omitempty"`
	RetryAfter string            `yaml:"retry_after,omitempty"` // as it stands in the header; date+30s is an HTTP date 30 s ahead
	Index      *int              `yaml:"index,omitempty"`       // of message N; absent is the matched record's place
	Delay      Duration          `yaml:"delay,omitempty"`       // before the answer; of hang its length
	Bytes      Size              `yaml:"bytes,omitempty"`       // before the cut; of huge its size
	Headers    map[string]string `yaml:"headers,omitempty"`
}

// Topic is a topic of the source.
type Topic struct {
	Partitions int      `yaml:"partitions"`
	Retention  Duration `yaml:"retention,omitempty"`
}

// Remote is a remote of the source; its user on the target gets a produce grant on the links' topics there.
type Remote struct {
	Limits Limits `yaml:"limits,omitempty"`
}

// Limits of a remote (api.md). Zero leaves the default.
type Limits struct {
	MaxInFlight       int    `yaml:"max_in_flight,omitempty"`
	RequestTimeoutMS  int    `yaml:"request_timeout_ms,omitempty"`
	IdleConnTimeoutMS int    `yaml:"idle_conn_timeout_ms,omitempty"`
	ConnMaxAgeMS      int    `yaml:"conn_max_age_ms,omitempty"`
	CheckIntervalMS   int    `yaml:"check_interval_ms,omitempty"`
	Compression       string `yaml:"compression,omitempty" enum:"none,zstd"`
}

// Link is a remote child.
type Link struct {
	Parent string   `yaml:"parent"`
	Child  string   `yaml:"child"`
	Remote string   `yaml:"remote"`
	Topic  string   `yaml:"topic"` // on the target
	Lanes  int      `yaml:"lanes"`
	From   string   `yaml:"from" enum:"attach,unconsumed,earliest"`
	Delay  Duration `yaml:"delay,omitempty"`
	Attach string   `yaml:"attach" enum:"before,after,step"` // before the load, after it, or by a step
}

// Traffic is one stream of produces. With for it runs that long, with count it stops after so many records. Without rate and every it goes as
// fast as the source answers.
type Traffic struct {
	Name      string   `yaml:"name"` // names its random sources
	Topic     string   `yaml:"topic"`
	At        Duration `yaml:"at,omitempty"`
	Rate      Rate     `yaml:"rate,omitempty"`
	Every     Duration `yaml:"every,omitempty"` // instead of rate: a request, of batch records, so often
	For       Duration `yaml:"for,omitempty"`
	Count     int      `yaml:"count,omitempty"`
	Keys      int      `yaml:"keys"` // 0: no keys
	NastyKeys bool     `yaml:"nasty_keys,omitempty"`
	Payload   Payload  `yaml:"payload"`
	Batch     int      `yaml:"batch"` // records a request; 1 uses the single route
}

// Payload mixes shapes and sizes.
type Payload struct {
	JSON   Percent `yaml:"json"`
	Text   Percent `yaml:"text"`
	Binary Percent `yaml:"binary"`
	Size   Sizes   `yaml:"size"`
}

// Fault is one thing that breaks and, unless it is a kill without for, heals.
type Fault struct {
	At      Duration `yaml:"at"`
	For     Duration `yaml:"for,omitempty"`
	Every   Duration `yaml:"every,omitempty"`   // done again after so long
	Times   int      `yaml:"times,omitempty"`   // how often; Load makes a fault of each
	Between []string `yaml:"between,omitempty"` // [source, target] is the link; of a cut also nodes, see parties
	Toxic   *Toxic   `yaml:"toxic,omitempty"`
	Flap    *Flap    `yaml:"flap,omitempty"`
	Cut     bool     `yaml:"cut,omitempty"` // the link is down, or nodes are parted
	OneWay  bool     `yaml:"one_way,omitempty"`
	Silent  bool     `yaml:"silent,omitempty"`
	Carries string   `yaml:"carries,omitempty" enum:"all,raft,rpc"` // what is cut between nodes, or muted
	Kill    string   `yaml:"kill,omitempty"`

	Unaudited bool `yaml:"unaudited,omitempty"` // of a kill: not before the node has committed a remote write, and then before its audit line

	Stop     string   `yaml:"stop,omitempty"` // graceful
	Restart  string   `yaml:"restart,omitempty"`
	Transfer string   `yaml:"transfer,omitempty" enum:"source leader,target leader"` // hands the lead over to another node of its side
	Rolling  string   `yaml:"rolling,omitempty" enum:"source,target"`                // restarts the nodes of a side one after the other
	Upgrade  string   `yaml:"upgrade,omitempty"`                                     // restarts a node of an older release with the present one
	Mute     string   `yaml:"mute,omitempty"`                                        // others that dial this node meet somebody who never answers
	Says     string   `yaml:"says,omitempty" enum:"nothing,garbage,endless,relayed"`
	Slow     Duration `yaml:"slow,omitempty"` // how long a started node stands still first
	Start    string   `yaml:"start,omitempty"`
	Pause    string   `yaml:"pause,omitempty"`
	Disk     *Disk    `yaml:"disk,omitempty"`
	Clock    *Clock   `yaml:"clock,omitempty"`
	TLS      string   `yaml:"tls,omitempty" enum:"expired,not_yet_valid,other_name,other_ca,tls_1.1,alert,stall,plain"` // what the target's edge shows
	DNS      []string `yaml:"dns,omitempty"`                                                                            // what the target's name is answered
	Config   *Config  `yaml:"config,omitempty"`
}

// Config restarts a node with more laid over its configuration, and without it at the end.
type Config struct {
	Node string         `yaml:"node"`
	Set  map[string]any `yaml:"set"`
}

// Toxic is a toxic of toxiproxy on the link. Which attributes it takes stands in toxicFields.
type Toxic struct {
	Type        string   `yaml:"type" enum:"latency,bandwidth,slow_close,timeout,reset_peer,slicer,limit_data"`
	Stream      string   `yaml:"stream" enum:"upstream,downstream"`
	Latency     Duration `yaml:"latency,omitempty"`
	Rate        ByteRate `yaml:"rate,omitempty"`
	Delay       Duration `yaml:"delay,omitempty"`
	Timeout     Duration `yaml:"timeout,omitempty"`
	AverageSize Size     `yaml:"average_size,omitempty"`
	Bytes       Size     `yaml:"bytes,omitempty"`
}

// Disk breaks the disk of a node.
type Disk struct {
	Node  string   `yaml:"node"`
	Fault string   `yaml:"fault" enum:"full,fsync_error,slow_fsync,bit_flip,power_loss,torn"`
	Files string   `yaml:"files,omitempty" enum:"all,cursors,wal,partitions,segments"` // which ones it meets
	Delay Duration `yaml:"delay,omitempty"`                                            // of slow_fsync
}

// Clock moves the wall clock of a node.
type Clock struct {
	Node  string `yaml:"node"`
	Step  Shift  `yaml:"step,omitempty"`
	Drift Shift  `yaml:"drift,omitempty"` // gained in each second
}

// Flap switches a whole fault on and off in turn while it lasts.
type Flap struct {
	On  Duration `yaml:"on"`
	Off Duration `yaml:"off"`
}

// Step is an admin action on the way. Which fields an action takes stands in actions.
type Step struct {
	At           Duration `yaml:"at"`
	Action       string   `yaml:"action" enum:"attach,detach,pause,resume,skip,test,set_limits,delete_remote,create_remote,target_password,rotate_password,remote_ca,target_topic,target_user,target_grant,recreate_parent,read_back,look,reencrypt,move,join,decommission"`
	Link         string   `yaml:"link,omitempty"`   // a child's name
	Remote       string   `yaml:"remote,omitempty"` // of an action on a remote
	To           string   `yaml:"to,omitempty" enum:"other,recorded,both,deleted,created,recreated,delay_child,remote_child,alone,removed,restored"`
	Force        bool     `yaml:"force,omitempty"`
	Reason       string   `yaml:"reason,omitempty"`
	AcceptTarget bool     `yaml:"accept_target,omitempty"`
	Partition    *int     `yaml:"partition,omitempty"` // of a move; of a skip, with offset: without both the record that the link is blocked on
	Offset       *int     `yaml:"offset,omitempty"`
	Node         string   `yaml:"node,omitempty"` // of a move: where the partition goes, the next running node after its owner when absent; who joins or is decommissioned
	Limits       *Limits  `yaml:"limits,omitempty"`
	Topic        string   `yaml:"topic,omitempty"`       // of a test: the target's topic, the link's when absent
	NoPassword   bool     `yaml:"no_password,omitempty"` // of remote_ca: the change comes without it (CRD-04)
	Expect       int      `yaml:"expect"`                // the status of the answer
	Says         string   `yaml:"says,omitempty"`        // words of the refusal, of an attach or a create_remote

	Shows map[string]string `yaml:"shows,omitempty"` // of a look, a test, a reencrypt: members of the answer with what they must be
}

// Expect is what must come true beside what is always owed.
type Expect struct {
	Drained Duration            `yaml:"drained"`
	States  map[string][]string `yaml:"states,omitempty"`
	Never   map[string][]string `yaml:"never,omitempty"`
	Metrics map[string]string   `yaml:"metrics,omitempty"`
	Waits   []string            `yaml:"waits,omitempty"`

	Logs     []LogLines `yaml:"logs,omitempty"`
	Requests []Asked    `yaml:"requests,omitempty"`
	Produces []Produced `yaml:"produces,omitempty"`

	Inconclusive string `yaml:"inconclusive,omitempty"` // the run must prove nothing, and the judge of the run must say so in these words
}

// Relax takes one judge out of a scenario.
type Relax struct {
	Judge  string `yaml:"judge"`
	Reason string `yaml:"reason"`
}
