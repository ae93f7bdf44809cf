package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"

	"go.opentelemetry.io/otel/attribute"
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
}

func (db *DB) writerOf(ctx context.Context, writer int64) (p process, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT pid, started_ns, version FROM writers WHERE id = ?", writer).Scan(&p.pid, &p.started, &p.version)
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

// resourceOf is what a writer's spans are of: this process, or one before it.
func (b *Outbox) resourceOf(ctx context.Context, writer int64) (*resourcepb.Resource, error) {
	if writer == b.writer {
		return b.resource, nil
	}
	p, err := b.db.writerOf(ctx, writer)
	if err != nil {
		return nil, err
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
