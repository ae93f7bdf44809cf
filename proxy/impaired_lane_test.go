package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"weir/shaper"
)

// What weir refuses or breaks in the endpoint's place does not wait for the
// endpoint's limits, and keeps nobody waiting for them.
func TestWhatNeverReachesTheEndpointTakesNothingOfItsLimits(t *testing.T) {
	for _, harm := range []string{"429+9s", "500", "529", "reset"} {
		t.Run(harm, func(t *testing.T) {
			impair := shaper.NewImpairer(nil, 1)
			harms, err := shaper.ParseImpairments(`session="a b": ` + harm)
			if err != nil {
				t.Fatal(err)
			}
			impair.Configure(harms)
			upstream := upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answerInOne) })
			s := start(t, upstream, func(p *Proxy) {
				p.Impair, p.Shaper = impair, &shaper.Shaper{}
				if _, _, err := p.Shaper.Change("rpm=1 wait=1h"); err != nil {
					t.Fatal(err)
				}
			})
			for range 3 { // the second would wait for a minute
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
				req.Header.Set("X-Weir-Session", "a b")
				if resp, err := s.client.Do(req); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
			c := s.call(t, 3)
			if !c.Worsened() || c.Lane != "" || c.QueuePosition != 0 {
				t.Errorf("impaired %q, lane %q, position %d", c.Impaired, c.Lane, c.QueuePosition)
			}
			for _, l := range s.Shaper.Lanes() {
				if l.Admitted != 0 {
					t.Errorf("lane %s admitted %d", l.Name, l.Admitted)
				}
			}
		})
	}
}
