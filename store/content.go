package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"weir/proxy/wire"
	"weir/store/call"
)

// Content is what is kept of a call beside its span.
type Content struct {
	SpanID  [8]byte
	TraceID [16]byte
	At      time.Time // the call's start

	Shape *wire.Shape // nil when the request could not be read

	// Full says that the bodies were to be kept. They are plain: no content
	// coding, and after Keeper no secrets. Nil is what has no bytes, or of
	// which nothing could be kept.
	Full              bool
	Request, Response []byte
	// The sizes of the whole bodies, as they went over the wire.
	RequestBytes, ResponseBytes int64
	// Whether less than the whole body is kept.
	RequestTruncated, ResponseTruncated bool

	// Keys are secrets that the bodies may quote, beside what looks like one.
	// They are not stored, and nil in what is read.
	Keys *call.Keys
}

// Content gives what is kept of the call with that span; false when that is
// nothing.
func (db *DB) Content(ctx context.Context, span [8]byte) (Content, bool, error) {
	c := Content{SpanID: span}
	var trace, shape, request, response []byte
	var at int64
	var kind string
	err := db.read.QueryRowContext(ctx, `SELECT trace_id, at_ns, kind, request_bytes, response_bytes, request_truncated, response_truncated, shape, request, response
		FROM contents WHERE span_id = ?`, span[:]).Scan(&trace, &at, &kind, &c.RequestBytes, &c.ResponseBytes, &c.RequestTruncated, &c.ResponseTruncated, &shape, &request, &response)
	if errors.Is(err, sql.ErrNoRows) {
		return Content{}, false, nil
	}
	if err != nil {
		return Content{}, false, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	copy(c.TraceID[:], trace)
	c.At, c.Full = time.Unix(0, at), kind == kindFull
	for _, part := range []struct {
		of   string
		blob []byte
		set  func(plain []byte) error
	}{
		{"shape", shape, func(b []byte) (err error) { c.Shape, err = parseShape(b); return err }},
		{"request", request, func(b []byte) error { c.Request = b; return nil }},
		{"response", response, func(b []byte) error { c.Response = b; return nil }},
	} {
		if part.blob == nil {
			continue
		}
		plain, err := unpack(part.blob)
		if err == nil {
			err = part.set(plain)
		}
		if err != nil {
			return Content{}, false, fmt.Errorf("database %s: the %s kept of call %x: %w", db.Path, part.of, span, err)
		}
	}
	return c, true, nil
}

const kindShape, kindFull = "shape", "full"

// contentRow is a content as it is written.
type contentRow struct {
	values []any // of insertContent, but for the last
	kept   int64
}

const insertContent = `INSERT OR REPLACE INTO contents (span_id, trace_id, at_ns, kind, request_bytes, response_bytes, request_truncated, response_truncated,
	shape, request, response, kept_bytes, until_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// rowBytes is about what a row takes beside its blobs.
const rowBytes = 160

// row redacts and packs a content.
func (c *Content) row() contentRow {
	var shape, request, response []byte
	kind := kindShape
	if c.Shape != nil {
		shape = pack(appendShape(nil, c.Shape))
	}
	if c.Full {
		kind = kindFull
		request = pack([]byte(c.Keys.Redact(string(c.Request))))
		response = pack([]byte(c.Keys.RedactStream(string(c.Response))))
	}
	kept := int64(rowBytes + len(shape) + len(request) + len(response))
	return contentRow{kept: kept, values: []any{c.SpanID[:], c.TraceID[:], c.At.UnixNano(), kind, c.RequestBytes, c.ResponseBytes,
		c.RequestTruncated, c.ResponseTruncated, blob(shape), blob(request), blob(response), kept}}
}

// The coders are made when something is first kept, or read.
var (
	packer = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	})
	unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	})
)

// pack compresses; nothing gives nothing.
func pack(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	z, err := packer()
	if err != nil { // of options that are constants
		panic(err)
	}
	return z.EncodeAll(b, nil)
}

func unpack(b []byte) ([]byte, error) {
	z, err := unpacker()
	if err != nil {
		return nil, err
	}
	return z.DecodeAll(b, nil)
}

// appendShape writes a shape as SCHEMA.md says.
func appendShape(dst []byte, s *wire.Shape) []byte {
	dst = append(dst, '[')
	for i, b := range s.Blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst, _ = quote(dst, string(b.Role)) // a string has no error
		dst = strconv.AppendUint(append(dst, ','), uint64(b.Kind), 10)
		dst, _ = quote(append(dst, ','), b.Name)
		dst = strconv.AppendInt(append(dst, ','), int64(b.Bytes), 10)
		dst = strconv.AppendUint(append(dst, ',', '"'), b.Hash, 16)
		dst = append(dst, '"', ']')
	}
	return append(dst, ']')
}

func parseShape(b []byte) (*wire.Shape, error) {
	var rows []json.RawMessage
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, err
	}
	s := &wire.Shape{Blocks: make([]wire.Block, len(rows))}
	for i, row := range rows {
		block := &s.Blocks[i]
		var hash string
		cells := []any{&block.Role, &block.Kind, &block.Name, &block.Bytes, &hash}
		err := json.Unmarshal(row, &cells)
		if err == nil {
			block.Hash, err = strconv.ParseUint(hash, 16, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i+1, err)
		}
	}
	return s, nil
}
