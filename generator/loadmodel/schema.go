package loadmodel

import _ "embed"

// Schema is the JSON Schema of a load model, for editors and other programs:
// what it refuses, Decode refuses. Decode checks more, as sums and orders, and
// its errors name places and what to do.
//
//go:embed schema.json
var Schema []byte
