// Package quickstart holds the load model of this folder, which weir demo
// replays.
package quickstart

import _ "embed"

// LoadModel is load_model.json, byte for byte.
//
//go:embed load_model.json
var LoadModel []byte
