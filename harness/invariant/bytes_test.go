package invariant

import (
	"testing"

	"narad.example/harness/ledger"
)

// covers: HAR-07
func TestBytesEqual(t *testing.T) {
	expect(t, bytesEqual, hand(4), ledger.Pass, "4 copies on the wire, 8 records in the logs")

	s := hand(4)
	s.Wire[0].Records[1].Payload = ledger.Hash([]byte("other"))
	expect(t, bytesEqual, s, ledger.Fail, id(1)+" has another payload on the wire, record 1 of request 1")

	s = hand(4)
	s.Wire[1].Records[0].Key = ""
	expect(t, bytesEqual, s, ledger.Fail, id(2)+" has another key on the wire")

	s = hand(4)
	s.Target[3].Payload = ledger.Hash([]byte("other"))
	expect(t, bytesEqual, s, ledger.Fail, id(3)+" has another payload in 2/3 of the target orders")

	s = hand(4)
	s.Target[2].Key = ""
	expect(t, bytesEqual, s, ledger.Fail, id(2)+" has another key in 2/2 of the target orders")

	s = hand(4)
	s.Parent[0].ID = "" // its marker was damaged
	expect(t, bytesEqual, s, ledger.Fail, "0/0 of the parent orders is none that was produced")

	// Through the API a JSON string and its words look alike; at the tap they do not.
	s = hand(4)
	s.Operations[0].Seen = ledger.Hash([]byte("words"))
	s.Parent[0].Payload, s.Target[0].Payload = s.Operations[0].Seen, s.Operations[0].Seen
	expect(t, bytesEqual, s, ledger.Pass, "")
	s.Wire[0].Records[0].Payload = s.Operations[0].Seen
	expect(t, bytesEqual, s, ledger.Fail, "payload on the wire")
}

// covers: HAR-07
func TestBytesEqualInconclusive(t *testing.T) {
	expect(t, bytesEqual, lacking(hand(4), ledger.OperationsName), ledger.Inconclusive, "operations.jsonl: absent")
	s := hand(4)
	s.Wire = nil
	expect(t, bytesEqual, s, ledger.Inconclusive, "no record was accepted")
	s = hand(4)
	s.Target = nil
	expect(t, bytesEqual, s, ledger.Inconclusive, "nothing was read back from the target")
}
