package corpus

var golang = parseGrammar(style{comment: "// ", indent: "\t"}, codeTexts, goStatements, `
==head
// $c
// $c
package $noun

import (
	"$pkg"
	"$pkg"
	"$pkg"

	"example.com/$noun/$noun"
)
|
package $noun

import (
	"$pkg"
	"$pkg"
)
|
// Package $noun is about $thing.
// $c
package $noun

import "$pkg"
|
// Copyright $name and others. $s.

package $noun

import (
	"context"
	"$pkg"
	"$pkg"
	"$pkg"
)
=pkg
context
errors
fmt
io
os
strings
sync
time
net/http
sort
bytes
encoding/json
path/filepath
strconv
bufio
math
log/slog
slices
maps
testing
database/sql
math/rand/v2
sync/atomic
encoding/binary
unicode/utf8
=decl
$method
$func
$method
$func
$struct
$method
$test
$const
$interface
$table
$method
$alias
$enum
$bench
==method
// $M $c
func ($recv) $M($params) $result {
	$body
	$return
}
|
func ($recv) $M($params) $result {
	$body
	$return
}
|
// $M $c
// $c
func ($recv) $M() $result {
	$r.mu.Lock()
	defer $r.mu.Unlock()
	$body
	$return
}
|
func ($recv) $M() $type { return $r.$a }
|
// $M is $says.
func ($recv) $M() string {
	return fmt.Sprintf("$format", $r.$a, $r.$a)
}
==func
// $f $c
func $f($params) $result {
	$body
	$return
}
|
func $F($params) $result {
	$body
	$return
}
|
// $F $c
//
// $c $c
func $F(ctx context.Context, $params) ($type, error) {
	$body
	return $expr, nil
}
|
func New$T($params) *$T {
	$body
	return &$T{
		$a: $expr,
		$a: $expr,
		$a: make($map),
	}
}
=recv
$r *$T
$r $T
==result
error
|
($type, error)
|
$type
|
bool
|
($type, bool)
|
(n int, err error)
==return
return nil
|
return $expr
|
return $expr, nil
|
return $expr, err
|
return len($v) $cmp $num
|
return fmt.Errorf("$format: %w", $v, $v, err)
=params
$new $type
$new, $new $type
ctx context.Context, $new $type
$new $type, $new $type
$new []$type
$new $type, $new func($type) bool
w io.Writer, $new ...$type
$new *$T, $new $type, $new time.Duration
=type
string
int
*$T
[]byte
int64
$T
bool
[]string
time.Duration
$map
float64
uint32
[]$T
error
time.Time
chan $T
io.Reader
[$nn]byte
func() error
any
uint8
=map
map[string]$T
map[string]int
map[int64]*$T
map[$T]bool
map[string][]string
==struct
// $T $c
type $T struct {
	$fields
}
|
type $T struct {
	$fields
	$fields
}
|
// $T is $says. $c
type $T struct {
	mu sync.Mutex
	$fields

	$fields
}
==fields
$a $type
$a $type // $thing
|
$A $type ´json:"$id"´
$A $type ´json:"$id,omitempty"´
|
// $c
$a $type
|
$a, $a $type
$a $type
$a $type // in $unit
|
$a $type // $says
$T
|
$A $type // $c
$A $type
|
$a atomic.Int64
==interface
// $T $c
type $T interface {
	$M($type) ($type, error)
	// $M $c
	$M(ctx context.Context, $new $type) error
	io.Closer
}
|
type $T interface {
	$M() $type
	$M($type, $type) bool
}
==alias
type $T $type
|
// $c
type $T = $map
|
type $T func(context.Context, $type) error
==const
const (
	$K = $num // $says
	$K = $num * time.Second
	$K = "$lit"
)
|
// $c
const $K = $num
|
var $K = errors.New("$s")
|
var (
	err$Id = errors.New("$s")
	err$Id = errors.New("$s")
	$K = []string{"$lit", "$lit", "$lit", "$lit"}
)
|
const $K = 0x$hex
|
var $K = regexp.MustCompile(´^$noun-([0-9a-f]{$n,$nn})\.$noun$.$´)
==enum
// $T $c
type $T uint8

const (
	$Id $T = iota + 1 // $says
	$Id
	$Id // $thing
	$Id
)
|
const (
	$Id $T = "$lit"
	$Id $T = "$lit"
	$Id $T = "$lit"
)
==table
// $c
var $f = map[string]$T{
	$rows
	$rows
}
|
var $K = [...]struct {
	$a string
	$a int
}{
	{"$lit", $num},
	{"$lit", $num},
	{"$lit", 0x$hex}, // $says
	{"$lit", $num},
}
|
var $f = []int{$num, $num, $num, $num, $num, $num, $num, $num, $num}
==rows
"$lit": {$a: $num, $a: "$lit"},
"$lit": {$a: $num},
|
"$noun": {"$lit", $num, true},
|
// $c
"$lit": {$a: $K, $a: $simple},
==test
func Test$F(t *testing.T) {
	for _, row := range []struct {
		$a string
		want $type
		$a bool
	}{
		{"$lit", $literal, true},
		{"$lit", $literal, false},
		{"$lit", $literal, $b},
		{"$lit", $literal, $b},
	} {
		got, err := $f(row.$a)
		if err != nil || got != row.want {
			t.Errorf("$format: want %v", row.$a, got, row.want)
		}
	}
}
|
// $c
func Test$T$F(t *testing.T) {
	$new := New$T($args)
	$body
	if $cond {
		t.Fatalf("$format", $v, $v)
	}
	if diff := cmp.Diff($expr, $v); diff != "" {
		t.Errorf("$s:\n%s", diff)
	}
}
|
func Test$F$Noun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	$stmt
	if err := os.WriteFile(filepath.Join(dir, "$lit"), []byte("$lit"), 0o644); err != nil {
		t.Fatal(err)
	}
	$body
}
==bench
func Benchmark$F(b *testing.B) {
	$new := $call
	b.SetBytes($num)
	for b.Loop() {
		$stmt
	}
}
|
func Example$F() {
	fmt.Println($f("$lit", $num))
	// Output: $lit
}
=path
$noun/$id.go
internal/$noun/$id.go
cmd/$noun/main.go
$noun/$noun/$noun.go
$id.test.go
`)
