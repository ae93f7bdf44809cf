package corpus

// goStatements is what stands in Go functions.
const goStatements = `
==body
$stmt
$stmt
$stmt
|
$stmt
$stmt
|
$stmt
|
$stmt
$stmt

$stmt
$stmt
|
// $c
$stmt
$stmt
|
$stmt
$stmt
$stmt

// $c
$stmt
$stmt
==stmt
$new := $call
|
if err := $call; err != nil {
	return fmt.Errorf("$format: %w", $v, $v, err)
}
|
$v = $expr
|
if $cond {
	$body
}
|
$new, err := $call
if err != nil {
	return $errs
}
|
$v.$a = $expr
|
for _, $new := range $v.$a {
	$body
}
|
$call
|
if $cond {
	$exit
}
|
$v = append($v, $expr)
|
$new := $expr // $says
|
switch $v.$a {
case $K:
	$body
case $literal, $literal:
	$stmt
default:
	$exit
}
|
if $new, ok := $v.$a[$expr]; ok {
	$body
}
|
$v.$a[$expr] = $expr
|
for $new := range $expr {
	$body
}
|
defer $call
|
if $cond {
	$body
} else {
	$body
}
|
$v $op $expr
|
var $new $type
|
go func() {
	$body
}()
|
slog.Info("$s", "$noun", $v, "$noun", $expr)
|
select {
case $new := <-$v.$a:
	$stmt
case <-ctx.Done():
	return ctx.Err()
}
|
rows, err := db.QueryContext(ctx, ´
	select $id, $id, $noun
	from $id where $id > ? and $noun = '$lit'
	order by $id limit $num´, $args)
if err != nil {
	return $errs
}
defer rows.Close()
|
for $new := $n; $v < $num; $v++ {
	$body
}
|
delete($v.$a, $expr)
|
switch {
case $cond:
	$body
case $cond:
	$body
}
|
$new := &$T{$a: $expr, $a: $expr}
|
$new := func($new $type) $type { return $expr }
=exit
continue
return
return nil
break
return $errs
panic("$s")
return $K
=errs
err
nil, err
nil, fmt.Errorf("$format: %w", $v, $v, err)
errors.Join(err, $call)
0, err$Id
fmt.Errorf("$s")
=cond
$v == nil
$v != $literal
$v.$a $cmp $num
len($v) == 0
!$v.$M($args)
$cond && $v.$a != $literal
$v $cmp $expr
errors.Is(err, $K)
$f($v)
$v.$a == $v.$a || $v $cmp $K
strings.HasPrefix($v, "$lit")
time.Since($v.$a) > $num*time.Millisecond
=cmp
<
>
==
<=
>=
!=
=op
+=
-=
|=
*=
%=
<<=
=call
$f($args)
$v.$M($args)
$v.$a.$M($args)
$f($v)
$v.$M()
$lib
New$T($args)
=lib
strings.TrimSpace($v)
strconv.Itoa($expr)
len($v.$a)
time.Now().Add($num * time.Second)
strings.Split($v, "$punct")
make($map, $num)
json.Marshal($v)
sort.Strings($v)
filepath.Join($v, "$lit")
os.Open($v)
io.ReadAll($v)
fmt.Sprintf("$format", $v, $expr)
bytes.NewReader($v)
make([]$type, 0, len($v))
utf8.RuneCountInString($v)
binary.BigEndian.Uint32($v[$n:])
math.Ceil(float64($v) / $num)
hex.EncodeToString($v[:$nn])
context.WithTimeout(ctx, $num*time.Second)
copy($v[$n:], $v)
slices.Sorted(maps.Keys($v.$a))
strings.ReplaceAll($v, "$punct", "$punct")
=punct
,
/
:
\n
\t
=
;
-
=args
$expr
$v, $expr
ctx, $v.$a
$v, $v
$v, $literal, $expr
ctx, $v, $expr

=expr
$v
$v.$a
$literal
$v.$a + $n
$call
$v[$expr]
$K
len($v)
$v.$a
$T{$a: $expr}
$v * $num
($v + $expr) / $num
$v[$n:]
&$v.$a
min($expr, $num)
$v & 0x$hex
[]string{"$lit", "$lit"}
$v[len($v)-$n]
string($v)
-$v
=simple
$K
$num
"$lit"
$b
=literal
$num
"$lit"
nil
$b
"$noun"
'$n'
0x$hex
""
$K
$num * time.Second
=b
true
false
=format
$noun %q: $s
$s: %v
%d $noun$.s of %v
$verb %s/%v
$f(%v) = %v
%s $noun at %d
[%04d] $s %s
%.2f $unit for %q
$lit: %v
%+v $state
`
