package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// object is a JSON object.
type object = map[string]any

// json answers 200 with a document.
func (x *exchange) json(document any) {
	body, err := json.Marshal(document)
	if err != nil {
		x.fail(http.StatusInternalServerError, "api_error", "", err.Error())
		return
	}
	x.whole(http.StatusOK, body)
}

// models lists the models, or tells of the one that the path names. Routes of
// models have no dialect: path and headers give away which is meant.
func (x *exchange) models() {
	names := x.s.c.Models
	if len(names) == 0 {
		names = []string{"sim"}
	}
	if _, one, ok := strings.Cut(x.r.URL.Path, "/models/"); ok {
		if !x.s.c.hasModel(one) {
			x.noModel(one)
			return
		}
		_, listed := modelObjects(x.r, []string{one})
		x.json(listed[0])
		return
	}
	list, _ := modelObjects(x.r, names)
	x.json(list)
}

func (x *exchange) noModel(name string) {
	x.fail(http.StatusNotFound, "not_found_error", "model_not_found", fmt.Sprintf("the model %q does not exist", name))
}

// modelObjects gives the list of models of a dialect, and each of them alone.
func modelObjects(r *http.Request, names []string) (list object, each []object) {
	const created, createdText = 1_767_225_600, "2026-01-01T00:00:00Z"
	gemini := strings.Contains(r.URL.Path, "/v1beta/")
	anthropic := r.Header.Get("Anthropic-Version") != ""
	for _, name := range names {
		switch {
		case gemini:
			each = append(each, object{"name": "models/" + name, "displayName": name, "supportedGenerationMethods": []string{"generateContent", "countTokens"}})
		case anthropic:
			each = append(each, object{"type": "model", "id": name, "display_name": name, "created_at": createdText})
		default:
			each = append(each, object{"object": "model", "id": name, "created": created, "owned_by": "weir"})
		}
	}
	switch {
	case gemini:
		return object{"models": each}, each
	case anthropic:
		return object{"data": each, "has_more": false, "first_id": names[0], "last_id": names[len(names)-1]}, each
	}
	return object{"object": "list", "data": each}, each
}

// embedding is what every text is taken to mean.
var embedding = []float64{0.1, -0.2, 0.3, 0.4}

// embeddings answers each text of a request with the same vector: OpenAI's way,
// where the input is a text or several, and Gemini's, where it is one.
func (x *exchange) embeddings(body []byte) {
	var asked struct {
		Model string          `json:"model"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		x.fail(http.StatusBadRequest, "invalid_request_error", "", "the body is not JSON: "+err.Error())
		return
	}
	if x.route.API == wire.Gemini {
		x.json(object{"embedding": object{"values": embedding}})
		return
	}
	var texts []string
	if json.Unmarshal(asked.Input, &texts) != nil {
		texts = make([]string, 1)
		if json.Unmarshal(asked.Input, &texts[0]) != nil {
			x.fail(http.StatusBadRequest, "invalid_request_error", "", "input: want a text or a list of texts")
			return
		}
	}
	tok, _ := corpus.ForModel(asked.Model)
	tokens, data := 0, []object{}
	for i, text := range texts {
		tokens += tok.Count(text)
		data = append(data, object{"object": "embedding", "index": i, "embedding": embedding})
	}
	x.json(object{"object": "list", "model": asked.Model, "data": data, "usage": object{"prompt_tokens": tokens, "total_tokens": tokens}})
}

// countTokens tells how many tokens a prompt has.
func (x *exchange) countTokens() {
	n := countPrompt(&x.req)
	switch x.route.API {
	case wire.Gemini:
		x.json(object{"totalTokens": n})
	case wire.Responses:
		x.json(object{"object": "response.input_tokens", "input_tokens": n})
	default:
		x.json(object{"input_tokens": n})
	}
}
