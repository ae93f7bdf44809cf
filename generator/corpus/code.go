package corpus

import "strconv"

// source is a source file: functions of a few shapes, in Go or Python.
func (a *Author) source() voice {
	if a.rng.IntN(2) == 0 {
		return a.python
	}
	return a.golang
}

// golang writes one function or type.
func (a *Author) golang(dst []byte) []byte {
	kind := appendCamel(nil, a.rng, true)
	field := appendCamel(nil, a.rng, false)
	name := appendCamel(nil, a.rng, true)
	limit := strconv.Itoa(a.rng.IntN(900) + 8)
	switch a.rng.IntN(4) {
	case 0:
		return a.sketch(dst, "// $N holds what is known of one $f.\ntype $N struct {\n\t$F string\n\t$G int64\n\tclosed bool\n}\n\n", kind, field, name, limit)
	case 1:
		return a.sketch(dst, "// $M gives the $f of $N, or an error that says why there is none.\nfunc (s *$N) $M(ctx context.Context, id string) (*$F, error) {\n\tif s.closed {\n\t\treturn nil, fmt.Errorf(\"$f %q: store is closed\", id)\n\t}\n\trow, err := s.db.Get(ctx, id)\n\tif err != nil {\n\t\treturn nil, fmt.Errorf(\"$f %q: %w\", id, err)\n\t}\n\treturn row.$F, nil\n}\n\n", kind, field, name, limit)
	case 2:
		return a.sketch(dst, "func $M(items []$N, limit int) map[string]int {\n\tcounts := make(map[string]int, len(items))\n\tfor i, item := range items {\n\t\tif item.$F == \"\" || i > limit+$l {\n\t\t\tcontinue\n\t\t}\n\t\tcounts[item.$F] += int(item.$G)\n\t}\n\treturn counts\n}\n\n", kind, field, name, limit)
	}
	return a.sketch(dst, "func Test$M(t *testing.T) {\n\tgot := New$N($l).$M()\n\tif got != $l*2 {\n\t\tt.Errorf(\"$M of $l: got %d\", got)\n\t}\n}\n\n", kind, field, name, limit)
}

// python writes one function or class.
func (a *Author) python(dst []byte) []byte {
	kind := appendCamel(nil, a.rng, true)
	field := appendIdentifier(nil, a.rng)
	name := appendIdentifier(nil, a.rng)
	limit := strconv.Itoa(a.rng.IntN(900) + 8)
	switch a.rng.IntN(3) {
	case 0:
		return a.sketch(dst, "@dataclass\nclass $N:\n    $f: str\n    $G: int = $l\n\n    def $M(self) -> bool:\n        return self.$G > $l and bool(self.$f)\n\n\n", kind, field, name, limit)
	case 1:
		return a.sketch(dst, "def $M(rows, $f=None):\n    \"\"\"Group rows by $f and keep the $l largest groups.\"\"\"\n    groups = defaultdict(list)\n    for row in rows:\n        if row.get(\"$f\") == $f:\n            groups[row[\"$G\"]].append(row)\n    return sorted(groups.items(), key=lambda g: -len(g[1]))[:$l]\n\n\n", kind, field, name, limit)
	}
	return a.sketch(dst, "async def $M(client, $f: str) -> $N:\n    async with client.get(f\"/v2/$G/{$f}\", timeout=$l) as reply:\n        if reply.status != 200:\n            raise LookupError(f\"$f {$f}: status {reply.status}\")\n        return $N(**await reply.json())\n\n\n", kind, field, name, limit)
}

// sketch fills a piece of source: $N a type, $f and $F a field, $G another one,
// $M a function, $l a number.
func (a *Author) sketch(dst []byte, text string, kind, field, name []byte, limit string) []byte {
	var other []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '$' {
			dst = append(dst, text[i])
			continue
		}
		i++
		switch text[i] {
		case 'N':
			dst = append(dst, kind...)
		case 'M':
			dst = append(dst, name...)
		case 'f':
			dst = append(dst, field...)
		case 'F':
			dst = append(dst, field[0]-'a'+'A')
			dst = append(dst, field[1:]...)
		case 'G':
			if other == nil {
				other = appendIdentifier(nil, a.rng)
			}
			dst = append(dst, other...)
		case 'l':
			dst = append(dst, limit...)
		}
	}
	return dst
}
