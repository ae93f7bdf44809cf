package corpus

// schema is tables and queries.
var schema = parseGrammar(style{comment: "-- ", indent: "  ", snake: true}, codeTexts, `
==head
-- $c
begin;
|
-- $c
-- $c
=decl
$query
$table
$query
$index
$change
$insert
==table
create table $f (
	$id bigint generated always as identity primary key,
	$columns,
	$columns
);
|
-- $c
create table if not exists $f (
	$noun text not null references $f ($noun) on delete cascade,
	$columns,
	unique ($a, $noun)
);
==columns
$a $type
|
$a $type not null,
$a $type default $literal
|
$a $type, -- $says
$a timestamptz not null default now()
|
$a $type check ($a $cmp $num)
=type
text
integer
bigint
timestamptz
numeric($n,$n)
boolean
jsonb
uuid
varchar($num)
real
==index
create index $f on $f ($a, $a desc);
|
create unique index concurrently $f_$noun on $f ($a) where $cond;
|
-- $c
drop index if exists $f;
==change
alter table $f
	add column $a $type not null default $literal,
	drop column $a;
|
comment on column $f.$a is '$s';
|
update $f
set $a = $expr, $a = $expr
where $cond;
|
delete from $f where $cond and $cond;
|
create view $f as
	$select;
==insert
insert into $f ($a, $a, $a) values
	('$lit', $num, $literal),
	('$lit', $num, $literal),
	('$lit', $num, $literal);
|
insert into $f ($a, $a)
$select
on conflict ($a) do update set $a = excluded.$a;
==query
$select;
|
-- $c
with $noun as (
	$select
)
$select;
|
-- $c
$select
union all
$select;
==select
select $expr, $expr
from $f
where $cond
|
select $a, $agg as $noun, $agg
from $f
left join $f on $f.$a = $f.$noun
where $cond
	and $cond
group by $a
having $agg $cmp $num
order by $n desc
limit $num
|
select case
		when $cond then '$lit'
		when $cond then $expr
		else $literal
	end as $noun,
	$expr
from $f
join $f using ($a)
|
select distinct on ($a) $a, $expr,
	row_number() over (partition by $a order by $noun desc) as $noun
from $f
where $cond
=agg
count(*)
sum($a)
max($f.$a)
avg($a)::numeric($n, $n)
count(distinct $a)
percentile_cont(0.$nn) within group (order by $a)
=cond
$a = $literal
$a > now() - interval '$nn days'
$a is not null
$f.$a $cmp $num
$a in ('$lit', '$lit', '$lit')
exists (select 1 from $f where $a = $num)
$a like '$noun%'
not $a
$a between $num and $num
=cmp
>
<
>=
<>
=
=expr
$a
$f.$a
coalesce($a, $literal)
$agg
$a * $num
lower($a)
$a ->> '$noun'
date_trunc('$noun', $a)
$a - $noun
round($a / $num, $n)
=literal
$num
'$lit'
null
true
false
'$noun'
now()
=path
migrations/00$nn_$verb_$noun.sql
queries/$id.sql
`)

// config is settings of services and their pipelines.
var config = parseGrammar(style{comment: "# ", indent: "  ", snake: true}, codeTexts, `
==head
# $c
version: $n
|
# $c
# $c
=decl
$service
$pairs
$job
$list
$rule
==service
$id:
	image: registry.example.com/$noun/$noun:$n.$nn.$n
	replicas: $n
	environment:
		$K: "$lit"
		$K: "$num"
		$K: $value
	ports: ["$num:$num"]
	# $c
	resources:
		limits: {cpu: "$n.$n", memory: $num$.Mi}
	depends_on: [$noun, $noun]
|
$noun:
	$pairs
	$noun:
		$pairs
==job
$id:
	runs-on: $noun-$nn.$nn
	timeout-minutes: $nn
	steps:
		- name: $s
			run: make $verb-$noun
		- name: $verb $noun
			run: |
				set -eu
				./scripts/$verb_$noun.sh --$noun=$num "$lit"
				test -s out/$noun.json
			env:
				$K: $value
==list
$noun:
	- name: $name
		$noun: $value
		$noun: $value
	- name: $name
		$noun: $value  # $says
		$a: [$value, $value]
|
# $c
$id: [$num, $num, $num, $num]
==rule
- alert: $T
	expr: sum(rate($id_total{$noun="$noun"}[$nn$.m])) by ($noun) > $num
	for: $nn$.m
	labels: {severity: $noun, team: $name}
	annotations:
		summary: "$s"
|
- match:
		path: /$noun/$noun/*
		method: [GET, POST]
	$noun: $value
	limit: {rate: $num, burst: $num}
==pairs
$a: $value
$a: $value  # $says
|
$a: $value
$noun_$noun: $value
$a: $value
|
# $c
$a: $value
=value
$num
"$lit"
true
false
$nn$.s
$noun
$id
$num$.MB
null
'$s'
/$noun/$noun/$noun
=path
deploy/$noun.yaml
config/$id.yml
.ci/$noun.yaml
`)
