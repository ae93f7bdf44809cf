package corpus

// pythonStatements is what stands in Python functions.
const pythonStatements = `
==body
$stmt
$stmt
$stmt
|
$stmt
|
$stmt
$stmt
|
$stmt

# $c
$stmt
$stmt
|
$stmt
$stmt

$stmt
$stmt
|
# $c
$stmt
==stmt
$new = $call
|
if $cond:
	$body
|
$v = $expr
|
self.$a = $expr
|
$call
|
for $new in $expr:
	$body
|
if $cond:
	$exit
|
raise $error(f"$format")
|
$new = $expr  # $says
|
$v.append($expr)
|
try:
	$body
except $error as exc:
	$exit
|
logger.$level("$s: %s", $v)
|
with $open as $new:
	$body
|
$v[$expr] = $expr
|
$new, $new = $call
|
if $cond:
	$body
elif $cond:
	$body
else:
	$exit
|
$v $op $expr
|
while $cond:
	$body
|
for $new, $new in enumerate($expr, $n):
	$body
|
$new = [$expr for $noun in $v if $cond]
|
assert $cond, "$s"
|
$new = {
	"$id": $expr,
	"$noun": $literal,
	"$noun": $call,
}
|
print(f"$format", file=sys.stderr)
|
del $v[$expr]
|
$new = sorted($v, key=lambda $noun: $noun.$a, reverse=$b)
|
yield $expr
|
match $v.$a:
	case $literal:
		$stmt
	case $T($a=$noun):
		$stmt
	case _:
		$exit
|
cursor.execute("select $id, $noun from $id where $noun = ? limit $num", ($v,))
|
try:
	$stmt
except ($error, $error):
	logger.exception("$s")
	raise
finally:
	$call
|
$new = np.$numpy($v, axis=$bit)
|
$new = $v["$noun"].groupby("$id").agg({"$noun": "$numpy"})
=numpy
mean
sum
sort
cumsum
median
argmax
std
diff
=open
open($v, "rb")
self.$a
$call
tempfile.TemporaryDirectory()
open($v, encoding="utf-8")
pytest.raises($error, match="$s")
=level
info
debug
warning
error
=error
ValueError
KeyError
$T$.Error
RuntimeError
TypeError
OSError
TimeoutError
LookupError
json.JSONDecodeError
=exit
continue
return None
raise
return $expr
break
pass
raise $error("$s") from exc
=cond
$v is None
not $v
$v.$a $cmp $num
$v in $expr
$v == $literal
isinstance($v, $type)
len($v) $cmp $num
self.$a and $cond
$v.startswith("$lit")
$call
"$noun" not in $v
$v % $num == $bit
any($noun.$a for $noun in $v)
=cmp
>
==
<
>=
<=
!=
=op
+=
-=
*=
//=
|=
=call
$f($args)
self.$M($args)
$v.$M($args)
$lib
$T($args)
self.$a.$M($v)
$f($v, $a=$expr)
await $v.$M($args)
=lib
len($v)
json.loads($v)
Path($v).resolve()
time.monotonic() - $v
$v.split("$punct")
os.path.join($v, "$lit")
defaultdict(list)
dict(zip($v, $v))
re.sub(r"[^a-z$n]+", "$punct", $v)
struct.pack("<HI", $num, $v)
sorted(set($v))
hashlib.sha256($v).hexdigest()[:$nn]
itertools.islice($v, $num)
random.Random($num)
datetime.fromisoformat("$inst")
sum($noun.$a for $noun in $v)
", ".join($v)
asyncio.sleep($num / $num)
round($v, $n)
str($v).zfill($n)
=punct
,
/
:
\n
-
_
;
=args
$expr
$v, $expr
$v
$v, $a=$expr
$literal
$v, "$lit", $num

=expr
$v
self.$a
$literal
$v.$a
$call
$K
$v[$expr]
$v.get("$noun", $literal)
$v + $num
$v or $literal
len($v)
$v[$n:]
f"$format"
$v * $num / $num
($v - $expr) // $num
[$v, $expr]
max($v, $num)
$v if $cond else $literal
lambda $noun: $noun[$bit]
$v[-$n]
not $v
{"$noun": $expr}
=literal
$num
"$lit"
None
$b
"$noun"
[]
0x$hex
""
'$lit'
{}
b"$hex"
($num, $num)
=b
True
False
=format
$noun {$v}: $s
$s: {exc}
{$v!r} is $state
$noun/{$v}/$noun
{$v:.2f} $unit
$s ({$v} of {$v.$a})
{$v:>$nn} $noun
`
