package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"weir/proxy/wire"
	"weir/store/call"
)

// What the endpoint says back of any key that went with the call is not
// recorded, nor handed to who keeps contents without the keys.
func TestEveryKeyOfARequestIsKeptOutOfWhatIsRecorded(t *testing.T) {
	keys := map[string]string{
		"X-Api-Key": "firstkey-aaaa/1111", "Authorization": "Bearer secondbearer-bbbb-2222", "Cf-Access-Client-Secret": "thirdsecret-cccc",
		"Cookie": "session=fourthcookie-dddd-4444", "X-Portkey-Api-Key": "fifthkey-eeee",
	}
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		said := fmt.Sprint(r.URL.Query().Get("key"))
		for name := range keys {
			said += " " + r.Header.Get(name)
		}
		text, _ := json.Marshal("No quota left for " + said)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"type":"auth","message":%s}}`, strings.ReplaceAll(string(text), "/", `\/`))
	})
	var kept []Content
	s := start(t, up, func(p *Proxy) {
		p.Keep = &Keep{Bodies: true, To: func(_ *call.Call, c Content) { kept = append(kept, c) }}
	})
	path, body := requestOf(wire.Messages, false)
	req, _ := http.NewRequest("POST", s.url+path+"?key=sixthkey%2Bffff", strings.NewReader(string(body)))
	for name, v := range keys {
		req.Header.Set(name, v)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	c := s.call(t, 1)
	response, _ := kept[0].Response.Plain(1 << 20)
	for of, text := range map[string]string{
		"the message": c.ErrorMessage, "the body": c.ErrorBody, "what is kept": kept[0].Keys.RedactStream(string(response)),
		"what prints": fmt.Sprintf("%+v", kept[0].Keys),
	} {
		for _, secret := range []string{"firstkey", "secondbearer", "thirdsecret", "fourthcookie", "fifthkey", "sixthkey"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s: %s", of, secret, text)
			}
		}
		if !strings.Contains(text, "[redacted]") {
			t.Errorf("%s has nothing redacted: %s", of, text)
		}
	}
}
