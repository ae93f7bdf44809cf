package call

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/proxy/wire"
)

func TestWhatIsLongIsCutAndMarked(t *testing.T) {
	for _, row := range []struct {
		sentence, text string
		want           string
	}{
		{"what fits → as it is", strings.Repeat("a", 256), strings.Repeat("a", 256)},
		{"too long → cut, with a mark", strings.Repeat("a", 257), strings.Repeat("a", 253) + "…"},
		{"between characters", strings.Repeat("世", 100), strings.Repeat("世", 84) + "…"},
		{"an odd byte", "m\xff", "m\uFFFD"},
		{"too long when its odd bytes are replaced", strings.Repeat("a\xff", 100), strings.Repeat("a\uFFFD", 63) + "a…"},
		{"nothing but odd bytes", strings.Repeat("\x80", 1000), "\uFFFD…"},
	} {
		got := fittingName(row.text)
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.sentence, got, row.want)
		}
		if again := fittingName(got); again != got || len(got) > nameLimit || !utf8.ValidString(got) {
			t.Errorf("%s: %q is not left as it is", row.sentence, got)
		}
	}
}

// enlarge makes every text of v long, and every list.
func enlarge(v reflect.Value) {
	long := strings.Repeat("x\xff", 3_000_000)
	switch v.Kind() {
	case reflect.String:
		v.SetString(long)
	case reflect.Struct:
		for i := range v.NumField() {
			enlarge(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.ValueOf(slicesOf(long, 5000)))
		}
	}
}

func slicesOf(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// Any client can name a model of megabytes, and any endpoint serve one.
func TestACallsAttributesAreBounded(t *testing.T) {
	c := full(1)
	enlarge(reflect.ValueOf(c).Elem())
	c.Side, c.API = Proxy, wire.Chat
	c.Labels = map[string]string{strings.Repeat("k", 5000): strings.Repeat("v", 1_000_000)}
	for i := range 5000 {
		c.Labels[fmt.Sprintf("label-%d", i)] = strings.Repeat("v", 1000)
	}
	total := len(c.SpanName())
	if line := c.String(); len(line) > 2*messageLimit {
		t.Errorf("the call prints in %d bytes", len(line))
	}
	for _, kv := range c.Attributes() {
		size, texts := len(kv.Key), append(kv.Value.AsStringSlice(), kv.Value.AsString())
		for _, s := range texts {
			if size += len(s); !utf8.ValidString(s) {
				t.Errorf("%s holds an odd byte", kv.Key)
			}
		}
		if size > bodyLimit+100 && kv.Key != KeyTimeline {
			t.Errorf("%s has %d bytes", kv.Key, size)
		}
		total += size
	}
	if most := 300 << 10; total > most {
		t.Errorf("the call has %d bytes, want at most %d", total, most)
	}
	for _, kv := range c.Series().Attributes() {
		if s := kv.Value.AsString(); len(s) > nameLimit || !utf8.ValidString(s) {
			t.Errorf("a metric's %s has %d bytes", kv.Key, len(s))
		}
	}
}
