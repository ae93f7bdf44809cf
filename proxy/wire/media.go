package wire

import "bytes"

const (
	leastMedia       = 1 << 10 // bytes of base64 that are taken for a picture or the like
	longestMediaType = 128     // what stands before the base64 of a data URI
	sample           = 64      // bytes of a string that are looked at, at either end
)

// media counts a field's string, as it stands in the body, if it is a picture, a
// sound or a file in base64: what it costs in tokens does not go by its bytes.
func (s *shaper) media(name, raw []byte) {
	if len(raw) < leastMedia {
		return
	}
	switch string(name) {
	case "data", "file_data", "result": // Anthropic and Gemini; OpenAI's files; its pictures that a model drew
		if !isBase64(raw) && !isDataURI(raw) {
			return
		}
	default:
		if !isDataURI(raw) {
			return
		}
	}
	s.pictures++
	s.pictureBytes += len(raw)
}

func isDataURI(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte("data:")) && bytes.Contains(raw[:min(len(raw), longestMediaType)], []byte(";base64,"))
}

// isBase64 looks at both ends of a string. Text of that length has spaces.
func isBase64(raw []byte) bool {
	for _, ch := range raw[:min(len(raw), sample)] {
		if !inBase64[ch] {
			return false
		}
	}
	for _, ch := range raw[max(0, len(raw)-sample):] {
		if !inBase64[ch] {
			return false
		}
	}
	return true
}

var inBase64 = func() (t [256]bool) {
	for _, ch := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\\") { // "\/" in JSON
		t[ch] = true
	}
	return t
}()

// isPicture says whether a part of that type is a picture.
func isPicture(kind []byte) bool {
	switch string(kind) {
	case "image", "image_url", "input_image":
		return true
	}
	return false
}
