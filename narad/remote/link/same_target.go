package link

import (
	"narad.example/narad/meta"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

func linkName(t meta.Topic) string { return t.Parent + "/" + t.Name }

func linkNames(stubs []meta.Topic) []string {
	names := make([]string, 0, len(stubs))
	for _, t := range stubs {
		names = append(names, linkName(t))
	}
	return names
}

// sameTargetAs refuses a URL for the remote when one of its links, which may outlive a deleted remote of its name, would then
// write into the same topic on the same host and port as a link of another remote (TGT-11).
func (s *site) sameTargetAs(name, url string) error {
	mine := s.o.State.Links(name)
	if len(mine) == 0 {
		return nil
	}
	topics := make(map[string]bool, len(mine))
	for _, t := range mine {
		topics[t.Remote.Topic] = true
	}
	return twice(s.linksAt(url, func(t meta.Topic) bool { return t.Remote.Remote != name && topics[t.Remote.Topic] }))
}

// freeTarget refuses a second link into one topic on the same host and port (TGT-11).
func (s *site) freeTarget(url, topic string) error {
	return twice(s.linksAt(url, func(t meta.Topic) bool { return t.Remote.Topic == topic }))
}

// linksAt returns the links of every remote with the URL's host and port that match.
func (s *site) linksAt(url string, match func(meta.Topic) bool) []meta.Topic {
	at := outbound.HostPort(url)
	var found []meta.Topic
	for _, r := range s.o.State.Remotes() {
		if outbound.HostPort(r.URL) != at {
			continue
		}
		for _, t := range s.o.State.Links(r.Name) {
			if match(t) {
				found = append(found, t)
			}
		}
	}
	return found
}

func twice(links []meta.Topic) error {
	if len(links) == 0 {
		return nil
	}
	return wire.Refuse(wire.Conflict, "another link writes into the same topic on the same host and port").With("links", linkNames(links))
}
