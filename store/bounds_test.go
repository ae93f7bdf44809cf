package store

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/store/call"
)

// vast is a call of whose texts a client and an endpoint make as much as they can.
func vast() *call.Call {
	long := strings.Repeat("x\xff", 3_000_000)
	c := streamed()
	c.Request.Model, c.Request.ReasoningLevel, c.Request.PromptCacheKey, c.Request.PreviousResponse = long, long, long, long
	c.Request.Stop = []string{long, long, long, long, long, long}
	c.Session, c.Agent, c.ClientName, c.ClientVersion, c.Path, c.Scenario = long, long, long, long, long, long
	c.ServedModel, c.ResponseID, c.Finish, c.ErrorBody, c.ErrorMessage, c.ErrorType = long, long, long, long, long, long
	c.Outcome, c.Lane = call.ServerError, "session="+long
	c.Labels = map[string]string{"team": long}
	for i := range 2000 {
		c.Labels[fmt.Sprint("label-", i)] = long[:500]
	}
	return c
}

// A span that is more than a collector takes would stand before all others, and
// a name of megabytes in each bucket of each scrape.
func TestNobodyCanMakeASpanOrAScrapeTooLarge(t *testing.T) {
	c := &collector{}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
	lane := "session=s\xff" + strings.Repeat("x", 1<<20)
	g := &gauger{}
	env := setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": g.serve(t, "grpc"), "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"})
	m, err := tr.NewMetrics(t.Context(), MetricsOptions{Env: env, Scraped: true, Lanes: func() []Lane { return []Lane{{Name: lane}, {Name: "model=gpt-\xff\xfe"}} }})
	if err != nil {
		t.Fatal(err)
	}
	record(tr, context.Background(), vast())
	record(tr, context.Background(), waitedIn(lane, 1))
	record(tr, context.Background(), example(1))
	await(t, "all spans to come", func() bool { return len(c.ids()) == 3 })
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || w.Body.Len() > 1<<20 || !utf8.Valid(w.Body.Bytes()) || !strings.Contains(w.Body.String(), `weir_lane="session=s�xxx`) {
		t.Errorf("a scrape is %d with %d bytes: %.200s", w.Code, w.Body.Len(), w.Body)
	}
	stop()
	if err := m.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.largest > 1<<20 {
		t.Errorf("a message has %d bytes", c.largest)
	}
	stored := all(t, db, "all")
	if len(stored) != 3 {
		t.Fatalf("%d calls are stored", len(stored))
	}
	for _, got := range stored {
		if len(got.Request.Model) > 256 || len(got.Session) > 256 || len(got.Labels) > 64 || len(got.Labels["team"]) > 256 {
			t.Errorf("the database keeps a model of %d bytes, a session of %d, %d labels", len(got.Request.Model), len(got.Session), len(got.Labels))
		}
	}
}
