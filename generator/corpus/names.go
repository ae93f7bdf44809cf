package corpus

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// style is how a language of programs spells.
type style struct {
	indent  string
	comment string // before a comment of one line
	snake   bool   // fields and functions are in snake case, constants in capitals
}

// What identifiers are made of.
var (
	codeNouns = strings.Fields(`account address agent alias anchor answer archive argument array asset attempt audit backend
		backup balance bank barrier base batch bearer bin bit block body bound box branch bridge bucket budget buffer build
		bundle burst byte cache call canvas capture card carrier cart catalog cell chain change channel chart check child chunk
		circle claim class clause client clock cluster code codec column command comment commit condition config conn contract
		control cookie copy core cost count country course crate credit cron cursor curve cycle daemon data date day deadline
		decoder default delay delta demand deploy depth device diff digest digit disk domain draft driver drop duration edge
		element email encoder engine entity entry envelope epoch error event exchange expiry export face factor failure family
		feature feed fetch fiber field file filter flag flight flow folder font forecast form format fragment frame gap gate
		gauge glyph goal grade grant graph grid group guard guide handle handler hash head header heap height hint history hole
		holder hook hop host hour icon identity image import index input insert instance interval inventory invoice issue item
		job join journal jump key kind label lane language latency layer layout leaf lease ledger length letter level library
		licence limit line link list listener loader locale location lock log loop lot mail map margin mark market mask match
		matrix measure media member memo memory menu merge message meter method metric migration mirror mode model module
		moment month mount movement name namespace network node note notice number object offer offset operand operator option
		order origin outcome output owner package packet pad page pair panel parameter parent parser part partner pass patch
		path pattern payload payment peer period permit phase phone pipe pipeline pivot place plan plugin point pointer policy
		pool port position post prefix premium preset price priority probe process product profile project prompt proof
		property proxy pulse purchase quantity query queue quota quote range rank rate ratio reader reason receipt record
		recipe redirect reference refund region registry relay release reminder remote render replica reply report request
		reserve resolver resource response result retry review ring role root rotation route row rule run salary sale sample
		scale scan schedule schema scope score screen script seal search seat section secret sector segment selector sender
		sensor sequence series server service session setting shape shard share shift shipment side signal signature site size
		slice slot snapshot socket source span spec speed spool stack stage stamp state station step stock stop storage store
		stream string style subject subnet suffix sum summary supplier surface switch symbol sync table tag target task tax
		template tenant term ticket tile timer title token tool topic total trace track transfer transit tree trigger trip tube
		tuple turn type unit update upload user value variant vault vector vendor version view visit voice volume voucher
		waiter walk warehouse watch watcher wave weight wheel width window wire word worker wrapper writer year zone`)
	codeVerbs = strings.Fields(`get set load parse write read make find open close send build new add apply check collect
		compute connect convert copy count create decode delete detect drain drop emit encode ensure expand expire extract
		fetch fill filter flush fold format generate grow handle init insert install invoke join keep lease limit list lock
		lookup mark match measure merge migrate move next normalize notify order pack pick plan poll pop prepare print prune
		publish pull push put queue rank rebuild record reduce refresh register release remove rename render replace reset
		resolve restore resume retry revoke rotate route run sample save scan schedule seal select serve settle shrink sign
		skip slice sort spend split start stop store strip sum swap sync take touch track trim unpack update upgrade validate
		verify visit wait walk warm weigh wrap`)
	codeAdjectives = strings.Fields(`max min last next pending raw local remote active total default empty first stale current
		old new open closed shared cold hot dirty daily dead early eager exact expected external failed fast final fixed free
		full global hidden idle initial inner internal known late lazy left linear live loose main missing mutable nested
		optional outer parallel partial plain previous private public random ready recent right safe seen short signed simple
		single slow soft sorted stable static strict temporary trusted unique unknown upper valid virtual weak`)
	shortNames = strings.Fields(`n i out buf key id data res val k name size p s b want got r start end x pos line item j msg
		cur ch now w args idx seen tmp acc text t left total q top cfg node opts prev next ok c d e h m u y lo hi mid req resp`)
)

// words of one identifier, up to three, and how they are joined.
func appendWords(dst []byte, rng *rand.Rand, first []string, count int, snake, exported bool) []byte {
	for i := range count {
		if snake && i > 0 {
			dst = append(dst, '_')
		}
		list := codeNouns
		switch {
		case i == 0 && first != nil:
			list = first
		case i == 0 && count > 1 && rng.IntN(4) == 0:
			list = codeAdjectives
		}
		at := len(dst)
		dst = append(dst, list[skewed(rng, len(list))]...)
		if exported || i > 0 && !snake {
			dst[at] &^= 0x20
		}
	}
	return dst
}

// file is one source file being written: the names that it uses again and
// again, and those that the function at hand has declared.
type file struct {
	a        *Author
	g        *grammar
	left     int  // declarations to come
	receiver byte // of its methods, where they name one
	locals   []string
	coming   []string // declared in this line, to be used from the next one on

	topics, types, functions, methods, fields, constants []string
}

func (a *Author) newFile(g *grammar) *file {
	f := &file{a: a, g: g, left: 6 + a.rng.IntN(22), receiver: "srcbqm"[a.rng.IntN(6)]}
	snake := g.style.snake
	fill := func(n int, name func([]byte) []byte) []string {
		list := make([]string, n)
		var room [64]byte
		for i := range list {
			list[i] = string(name(room[:0]))
		}
		return list
	}
	rng := a.rng
	f.topics = fill(24, func(b []byte) []byte { return appendWords(b, rng, nil, 1, true, false) })
	f.types = fill(3+rng.IntN(6), func(b []byte) []byte { return appendWords(b, rng, nil, 1+rng.IntN(2), false, true) })
	f.functions = fill(10+rng.IntN(14), func(b []byte) []byte { return appendWords(b, rng, codeVerbs, 2+rng.IntN(2), snake, false) })
	f.methods = fill(10+rng.IntN(14), func(b []byte) []byte { return appendWords(b, rng, codeVerbs, 1+rng.IntN(2), snake, !snake) })
	f.fields = fill(14+rng.IntN(16), func(b []byte) []byte { return appendWords(b, rng, nil, 1+rng.IntN(2), snake, false) })
	f.constants = fill(5+rng.IntN(6), func(b []byte) []byte {
		at := len(b)
		b = appendWords(b, rng, codeAdjectives, 2, snake, false)
		for i := at; snake && i < len(b); i++ {
			if b[i] != '_' {
				b[i] &^= 0x20
			}
		}
		return b
	})
	return f
}

// slots are the holes that no rule fills, but chance and the file's names.
var slots = codeSlots()

func codeSlots() map[string]func(*file, []byte) []byte {
	again := func(list func(*file) []string) func(*file, []byte) []byte {
		return func(f *file, dst []byte) []byte {
			names := list(f)
			return append(dst, names[skewed(f.a.rng, 1+skewed(f.a.rng, len(names)))]...)
		}
	}
	exported := func(write func(*file, []byte) []byte) func(*file, []byte) []byte {
		return func(f *file, dst []byte) []byte {
			at := len(dst)
			dst = write(f, dst)
			dst[at] &^= 0x20
			return dst
		}
	}
	field := again(func(f *file) []string { return f.fields })
	function := again(func(f *file) []string { return f.functions })
	number := func(n int64) func(*file, []byte) []byte {
		return func(f *file, dst []byte) []byte { return strconv.AppendInt(dst, f.a.rng.Int64N(n), 10) }
	}
	return map[string]func(*file, []byte) []byte{
		"T":    again(func(f *file) []string { return f.types }),
		"F":    exported(function),
		"f":    function,
		"M":    again(func(f *file) []string { return f.methods }),
		"a":    field,
		"A":    exported(field),
		"K":    again(func(f *file) []string { return f.constants }),
		"r":    func(f *file, dst []byte) []byte { return append(dst, f.receiver) },
		"v":    (*file).local,
		"new":  (*file).declare,
		"bit":  number(2),
		"n":    number(10),
		"nn":   number(100),
		"num":  (*file).number,
		"hex":  (*file).hex,
		"inst": func(f *file, dst []byte) []byte { return f.a.instant(dst) },
		"noun": (*file).noun,
		"Noun": exported((*file).noun),
		"verb": func(f *file, dst []byte) []byte { return appendWords(dst, f.a.rng, codeVerbs, 1, true, false) },
		"adj":  func(f *file, dst []byte) []byte { return appendWords(dst, f.a.rng, codeAdjectives, 1, true, false) },
		"id":   func(f *file, dst []byte) []byte { return appendWords(dst, f.a.rng, nil, 2, true, false) },
		"Id":   func(f *file, dst []byte) []byte { return appendWords(dst, f.a.rng, nil, 2, false, true) },
		"name": func(f *file, dst []byte) []byte { return appendName(dst, f.a.rng) },
		"says": func(f *file, dst []byte) []byte { return f.inLanguage(dst, "about", "aboutZh") },
		"c":    func(f *file, dst []byte) []byte { return f.inLanguage(dst, "comment", "commentZh") },
		"s":    func(f *file, dst []byte) []byte { return f.inLanguage(dst, "message", "messageZh") },
	}
}

// inLanguage writes the one rule or the other, by the author's language.
func (f *file) inLanguage(dst []byte, english, chinese string) []byte {
	if f.a.chinese() {
		english = chinese
	}
	return f.write(dst, english)
}

// declare makes up a name and keeps it for local.
func (f *file) declare(dst []byte) []byte {
	at, rng := len(dst), f.a.rng
	switch rng.IntN(5) {
	case 0, 1:
		dst = append(dst, shortNames[skewed(rng, len(shortNames))]...)
	case 2, 3:
		dst = appendWords(dst, rng, nil, 1, true, false)
	default:
		dst = appendWords(dst, rng, nil, 2, f.g.style.snake, false)
	}
	f.coming = append(f.coming, string(dst[at:]))
	return dst
}

// local writes a name declared before, mostly a late one.
func (f *file) local(dst []byte) []byte {
	n := len(f.locals)
	if n == 0 {
		return append(dst, f.topics[0]...)
	}
	return append(dst, f.locals[n-1-skewed(f.a.rng, n)]...)
}

// noun writes one, mostly of those that the file is about.
func (f *file) noun(dst []byte) []byte {
	list := f.topics
	if f.a.rng.IntN(3) == 0 {
		list = codeNouns
	}
	return append(dst, list[skewed(f.a.rng, len(list))]...)
}

// number writes one as programs have them: round ones, powers of two, any.
func (f *file) number(dst []byte) []byte {
	rng := f.a.rng
	n := rng.Int64N(1 << 40)
	switch n & 7 {
	case 0, 1:
		return strconv.AppendInt(dst, n>>4%20, 10)
	case 2:
		return strconv.AppendInt(dst, 1<<(n>>4%17), 10)
	case 3:
		return strconv.AppendInt(dst, (n>>4%99+1)*10, 10)
	case 4:
		return strconv.AppendInt(dst, n>>4%1000, 10)
	case 5:
		dst = strconv.AppendInt(dst, n>>4%100, 10)
		dst = append(dst, '.')
		return strconv.AppendInt(dst, n>>20%100, 10)
	case 6:
		return strconv.AppendInt(dst, n>>4%100_000, 10)
	}
	return append(strconv.AppendInt(dst, n>>4%60+1, 10), "000"...)
}

// hex writes 2 to 16 digits.
func (f *file) hex(dst []byte) []byte {
	n := f.a.rng.Uint64()
	for range 2 << (n & 3) {
		n = n>>4 | n<<60
		dst = append(dst, "0123456789abcdef"[n>>8&15])
	}
	return dst
}
