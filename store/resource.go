package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

// Keys of the resource that are of one process.
const (
	keyInstance = "service.instance.id"
	keyVersion  = "service.version"
	keyPID      = "process.pid"
)

// process is one that recorded.
type process struct {
	pid, started int64
	version      string
	resource     sql.NullString // JSON; an older weir kept none
}

func (db *DB) writerOf(ctx context.Context, writer int64) (p process, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT pid, started_ns, version, resource FROM writers WHERE id = ?", writer).Scan(&p.pid, &p.started, &p.version, &p.resource)
	if err != nil {
		return p, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	return p, nil
}

// instance tells one process from all others, whoever asks: a UUID made of
// where, when and as what it began.
func (p process) instance() string {
	host, _ := os.Hostname() // without one, fewer things tell it apart
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", host, p.pid, p.started))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8: of one's own making
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// keepResource keeps what a writer's spans are of, for whoever sends them later.
func (db *DB) keepResource(ctx context.Context, writer int64, res *resource.Resource) error {
	var text object
	var err error
	for _, kv := range res.Attributes() {
		if text, err = text.with(string(kv.Key), kv.Value); err != nil {
			return err
		}
	}
	if _, err = db.write.ExecContext(ctx, "UPDATE writers SET resource = ? WHERE id = ?", text.String(), writer); err != nil {
		return fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	return nil
}

// resourceOf is what a writer's spans are of: this process, or one before it,
// which may have been on another machine.
func (b *Outbox) resourceOf(ctx context.Context, writer int64) (*resourcepb.Resource, error) {
	if writer == b.writer {
		return b.resource, nil
	}
	p, err := b.db.writerOf(ctx, writer)
	if err != nil {
		return nil, err
	}
	if p.resource.Valid {
		return readResource(p.resource.String)
	}
	its := keyValues([]attribute.KeyValue{attribute.Int64(keyPID, p.pid), attribute.String(keyVersion, p.version), attribute.String(keyInstance, p.instance())})
	other := &resourcepb.Resource{Attributes: its}
	for _, kv := range b.resource.Attributes {
		if !slices.ContainsFunc(its, func(own *commonpb.KeyValue) bool { return own.Key == kv.Key }) {
			other.Attributes = append(other.Attributes, kv)
		}
	}
	return other, nil
}

// readResource reads what keepResource wrote: texts, whole numbers, truth values
// and lists of texts.
func readResource(text string) (*resourcepb.Resource, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var values map[string]any
	if err := dec.Decode(&values); err != nil {
		return nil, fmt.Errorf("the resource of a writer cannot be read: %w", err)
	}
	var list []attribute.KeyValue
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch v := values[key].(type) {
		case string:
			list = append(list, attribute.String(key, v))
		case bool:
			list = append(list, attribute.Bool(key, v))
		case json.Number:
			if n, err := v.Int64(); err == nil {
				list = append(list, attribute.Int64(key, n))
			}
		case []any:
			var texts []string
			for _, e := range v {
				texts = append(texts, fmt.Sprint(e))
			}
			list = append(list, attribute.StringSlice(key, texts))
		}
	}
	return &resourcepb.Resource{Attributes: keyValues(list)}, nil
}
