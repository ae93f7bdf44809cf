package corpus

var python = parseGrammar(style{comment: "# ", indent: "    ", snake: true}, codeTexts, pythonStatements, `
==head
"""$c"""

import $pkg
import $pkg
from $module import $T, $f

$K = $num
|
# $c
# $c
from __future__ import annotations

import $pkg
from dataclasses import dataclass, field
from typing import Any, Iterator

from .$noun import $f, $T

logger = logging.getLogger(__name__)
|
#!/usr/bin/env python3
"""$c

$c
"""
import argparse
import $pkg
import sys

import $pkg
|
import $pkg
import $pkg

=pkg
json
os
re
logging
asyncio
time
itertools
collections
functools
pathlib
hashlib
random
sqlite3
struct
threading
math
csv
datetime
contextlib
numpy as np
pytest
pandas as pd
httpx
=module
$noun.$noun
collections
.$id
typing
app.$noun
=decl
$func
$class
$func
$data
$func
$test
$const
$async
$main
==func
def $f($params):
	"""$c"""
	$body
	$return

|
def $f($params) -> $type:
	$body
	$return

|
def $f($params) -> $type:
	"""$c

	$c
	:param $a: $says
	:raises ValueError: $when
	"""
	$body
	$return

|
@functools.lru_cache(maxsize=$num)
def $f($params):
	$stmt
	$return

|
@contextlib.contextmanager
def $f($params) -> Iterator[$type]:
	$new = $call
	try:
		yield $v
	finally:
		$stmt

==class
class $T($base):
	"""$c"""

	$a = $literal
	$a = $literal

	def __init__(self, $params) -> None:
		self.$a = $v
		self.$a = $expr
		$stmt

	$methods

|
class $T:
	$methods

	$methods

|
class $T($base):
	# $c
	def __init__(self, $params):
		super().__init__()
		self.$a = $expr
		self._$noun = $expr  # $says

	$methods

=base
$T
Exception
object
Protocol
ABC
dict
threading.Thread
Base$T
==methods
def $M(self, $params):
	$body
	$return
|
@property
def $a(self) -> $type:
	return self._$noun
|
def $M(self, $params) -> $type:
	"""$c"""
	$body
	$return

def $M(self):
	$stmt
|
async def $M(self, $params) -> $type:
	$body
	$return
|
@staticmethod
def $M($params):
	$return
|
def __repr__(self):
	return f"$T({self.$a!r}, {self.$a})"
|
@classmethod
def $M(cls, $params) -> "$T":
	$body
	return cls($args)
|
def __len__(self) -> int:
	return len(self.$a)
==data
@dataclass
class $T:
	$a: $type
	$a: $type = $literal
	$a: list[$type] = field(default_factory=list)

|
@dataclass(frozen=True)
class $T:
	"""$c"""

	$a: $type  # $says
	$a: $type
	$a: $type | None = None

	def $M(self) -> $type:
		$return

|
class $T(Enum):
	$K = "$lit"
	$K = "$lit"
	$K = $num

|
class $T(BaseModel):
	$a: $type = Field(..., description="$s")
	$a: $type = Field($literal, ge=$n, le=$num)
	$a: Optional[$type] = None

|
class $T(models.Model):
	$a = models.CharField(max_length=$num, db_index=True)
	$a = models.ForeignKey("$T", on_delete=models.CASCADE, related_name="$id")
	$a = models.DateTimeField(auto_now_add=True)
	$a = models.IntegerField(default=$num, help_text="$s")

==test
def test_$f(tmp_path):
	$new = $call
	$stmt
	assert $v.$a == $literal
	assert $f("$lit", $num) is None

|
@pytest.mark.parametrize("$noun, expected", [
	("$lit", $literal),
	("$lit", $literal),
	($num, $literal),
	("$lit", None),
])
def test_$f_$noun($noun, expected):
	$new = $T($args)
	assert $f($v, $noun) == expected

|
class Test$T(unittest.TestCase):
	def setUp(self):
		self.$a = $T($args)

	def test_$f(self):
		$body
		self.assertEqual($expr, $literal)

	def test_$adj_$noun(self):
		with self.assertRaises($error):
			self.$a.$M($args)

|
async def test_$f_$adj(client):
	reply = await client.$http("/$noun/$num", json={"$id": $literal})
	assert reply.status_code == $status, reply.text
	assert reply.json()["$noun"] == $literal

=http
get
post
put
delete
patch
=status
200
404
201
400
422
204
429
503
==const
$K = {
	"$lit": $literal,
	"$lit": $literal,
	"$lit": ($num, "$lit"),
	"$noun": $num,  # $says
}
|
# $c
$K = $num
$K = $num * 60
|
$K = ["$lit", "$lit", "$lit", "$lit"]
|
_$K = re.compile(r"^$noun-(\d{$n,$nn})\.$noun$.$")
|
$K = os.environ.get("$K", "$lit")
|
$K = """
	select $id, count(*), max($noun)
	from $id
	where $id >= :$noun and $noun <> '$lit'
	group by $id
"""
|
$f = {0x$hex: $num, 0x$hex: $num, 0x$hex: $num}
==async
async def $f(client, $params) -> $type:
	async with client.$http(f"/$noun/{$v}/$noun", timeout=$num) as reply:
		if reply.status != $status:
			raise $error(f"$format")
		$new = await reply.json()
	$body
	$return

|
async def $f($params):
	"""$c"""
	$new = asyncio.Queue(maxsize=$num)
	async with asyncio.TaskGroup() as group:
		group.create_task($call)
	$body

|
@app.$http("/$noun/{$noun}/$noun")
async def $f($noun: str, $params) -> $type:
	$body
	$return

==main
def main(argv=None) -> int:
	parser = argparse.ArgumentParser(description="$s")
	parser.add_argument("$noun", help="$s")
	parser.add_argument("--$noun-$noun", type=int, default=$num, help="$s")
	parser.add_argument("--$adj", action="store_true")
	args = parser.parse_args(argv)
	$body
	return $n


if __name__ == "__main__":
	sys.exit(main())

==return
return $expr
|
return $v
|
return [$v.$a for $noun in $v if $cond]
|
return $call
|
return self.$a
|
return {"$id": $expr, "$noun": $expr}
|
return $expr, $v
|
raise NotImplementedError
=params
$new
$new: $type
$new, $new=$literal
$new: $type, $new: $type
$new: $type, *, $new: $type = $literal
$new, $new, **kwargs
$new: list[$type], $new: $type | None = None
*$new: $type
=type
str
int
$T
bool
dict[str, $type]
list[$type]
float
bytes
None
Path
datetime
Any
tuple[int, str]
Callable[[$type], $type]
set[str]
Decimal
=path
$noun/$id.py
tests/test_$noun.py
src/$noun/$noun.py
scripts/$verb_$noun.py
`)
