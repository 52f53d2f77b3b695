package meta

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// Two changes of the configuration at once are never decided by the same one: of nodes that ask to be let in under one ID, or at one address,
// one is, and the others are told why not.
//
// covers: BRK-07
func TestChangesOfTheConfigurationComeOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t, t.TempDir(), &lines{})
		defer func() { require.NoError(t, s.Close()) }()
		_, err := s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		const askers = 8
		for round, ask := range []func(i int) (id, addr string){
			func(i int) (string, string) { return "two", fmt.Sprintf("two-%d:1", i) },
			func(i int) (string, string) { return fmt.Sprint("three-", i), "three:1" },
		} {
			errs := make([]error, askers)
			var all sync.WaitGroup
			for i := range askers {
				all.Go(func() {
					id, addr := ask(i)
					errs[i] = s.AddServer(t.Context(), id, addr)
				})
			}
			all.Wait()
			in := 0
			for _, err := range errs {
				if err == nil {
					in++
					continue
				}
				require.Equal(t, wire.Conflict, wire.KindOf(err), "%v", err)
			}
			require.Equal(t, 1, in)
			require.Len(t, s.Servers(), 2+round)
		}
	})
}
