package corpus

var englishWords = wordLists(map[byte]string{
	'n': `team report budget market customer project service schedule contract price result supplier region method
		survey network policy harbour engine sensor factory committee library museum hospital school bridge river
		forest garden kitchen valley archive battery camera vehicle railway airport warehouse laboratory newspaper
		theatre orchestra bakery clinic council department district farm field festival fleet grant group habit
		history house idea index industry inspection island journey judge language lecture lesson letter licence
		machine manual map material measure meeting memory message mill mine model mountain office orchard order
		painting paper partner pattern pipeline plan plant platform port procedure process product programme
		proposal protocol question record reform relay research reservoir resource review road route rule sample
		season sector shipment signal site society software soil station storm strategy street student study summit
		system task technique temple theory tool tower town trade tradition trail training treaty trial tunnel unit
		village vineyard visitor wall water weather winter workshop writer yard`,
	'N': `teams reports customers engineers farmers residents teachers suppliers patients visitors drivers analysts
		managers students researchers inspectors neighbours readers operators volunteers designers investors nurses
		pilots officials tenants owners editors members experts families musicians builders gardeners lawyers
		merchants observers passengers painters planners scholars sailors technicians translators workers`,
	'v': `describes explains supports improves replaces follows limits changes protects measures compares requires
		confirms delays simplifies extends reflects covers contradicts completes attracts balances concerns defines
		develops divides drives enables exceeds funds guides helps hides illustrates influences involves
		links maintains manages notes offers outlines permits predicts prevents produces promises raises reaches
		records reduces rejects repeats reports resists restores reveals serves shapes shares shows solves starts
		stores studies suggests tests traces transforms treats underlines uses values widens`,
	'p': `reviewed finished postponed questioned accepted rebuilt discovered published repaired recorded presented
		rejected collected doubled halved approved prepared tested moved closed opened financed documented
		redesigned abandoned adjusted analysed announced assembled borrowed checked cleaned combined considered
		corrected counted delivered described discussed drafted examined expanded explained explored found gathered
		identified ignored inspected installed introduced labelled launched learned listed mapped mentioned
		monitored named negotiated noticed observed ordered organised painted planned printed protected purchased
		raised received reduced released removed renamed repeated replaced requested restored saved shared shipped
		signed simplified sorted studied summarised surveyed tracked translated updated visited watched weighed wrote`,
	'b': `reduce improve explain measure protect replace understand finish compare avoid describe support extend
		share repair plan test simplify organise predict record review deliver manage balance build check collect
		control defend develop discover explore finance follow guide handle inspect keep limit maintain move
		negotiate observe open prepare present preserve prevent produce publish raise reach rebuild recover restore
		schedule select separate solve store strengthen study teach track train translate update`,
	'a': `small new local early quiet careful annual public recent simple complex reliable expensive temporary
		permanent narrow modern regional technical final several unusual ordinary important independent older
		separate common practical remote seasonal detailed direct distant dry efficient empty familiar flexible
		formal fragile fresh gradual heavy hidden honest industrial informal initial internal late light limited
		long manual marginal mild mixed mutual natural neutral northern open original outdoor partial patient plain
		popular precise previous private proper rapid rare rough rural safe secondary serious severe shallow sharp
		short silent similar single slow smooth southern special stable steady strict strong sudden suitable
		technical tall thick thin traditional typical urban useful visible warm western wide wooden young`,
	'd': `quickly slowly carefully often rarely usually nearly almost clearly quietly directly mostly partly roughly
		eventually recently steadily barely briefly broadly closely deeply easily equally exactly fairly finally
		firmly formally freely fully generally gently gradually hardly largely lightly merely openly plainly poorly
		possibly precisely probably properly publicly quite really regularly seldom sharply simply smoothly strongly
		surely widely`,
	't': `January|February|March|April|May|June|July|August|September|October|November|December|last spring|early autumn|
		the second quarter|the following week|the end of the year|the first month|late winter|the summer of that year`,
	'c': `However|In addition|For example|As a result|Meanwhile|By contrast|In practice|After that|Even so|At first|
		On the other hand|More recently|For this reason|In most cases|Until then|From a distance|According to the notes|
		Under normal conditions|In the same period|Without that|Over time|Strictly speaking|Once again|To begin with`,
	'r': `because|although|while|so that|until|after|before|since|even though|unless|as long as|whenever`,
	'e': `the cost|the delay|the quality of the work|the number of errors|the demand|the available space|
		the amount of water|the response time|public interest|the risk|the temperature|the average price|
		the length of the queue|the level of noise|the share of repeat visits|the distance|the energy used`,
	'o': `rose|fell|stayed the same|changed|doubled|dropped|improved|became harder to explain|was lower than expected|
		returned to normal|grew|varied from day to day|could not be measured|matched the forecast|levelled off`,
	'q': `Could you explain|Please describe|Can you summarise|Tell me in detail|I would like to know|Help me understand|
		Please compare|Write a short note about|List the reasons for|What is known about|Give me an overview of|
		Walk me through|Please draft a reply about|Make a plan for`,
	'h': `how the|why the|whether the|when the|where the`,
})

var englishSentences = parseTemplates(`
The {a} {n} {v} the {n} of the {n}.
{c}, the {N} {p} a {a} {n} in {t}.
In {y}, {W} {p} the {a} {n}, and {e} {o}.
{N} from {W} {d} {p} the {n} {r} {e} {o}.
The {n} near {W} {p} {m} {N} in {k} days.
About {x} of the {N} said that the {n} {v} their {n}.
It is {d} possible to {b} a {n} {r} the {n} {v} it.
{c}, {e} {o} by {x} between {t} and {t}.
Dr. {W} {p} the {n} and asked the {N} to {b} it {d}.
"We want to {b} the {n}," said {W}, who had {p} the {a} {n}.
The {a} {n} that the {N} {p} in {y} is still {a} today.
To {b} the {n}, the {N} had to {b} {m} {a} items first.
There were {k} reasons for this: the {n} was {a}, the {N} were few, and {e} {o}.
{c}, nobody at the {n} could {b} the {n} without the {N}.
The {n} costs {m} a year, which is {x} more than the {n} of {W}.
Most {N} {d} agree that a {a} {n} {v} the {n}.
When the {n} was {p}, the {N} were asked to {b} a second {n}.
The {n} of {W} is {a}, {a} and {d} {p}.
What the {N} did not expect was that {e} {o} so {d}.
If the {n} {v} the {n}, the {N} will {b} it again in {t}.
Neither the {n} nor the {N} {p} the {a} {n} before {y}.
A {n} of this kind {v} the {n}; it is {a}, but it helps to {b} the {n}.
Table {k} lists {m} {N}, their {n} and the {n} that they {p}.
The older {n} was {p} in {y} {r} the {N} needed a {a} {n}.
Its {n} is {a} enough to {b} a {a} {n} for {k} hours.
{c}, {W} and {W} {p} the {n} together.
They {p} it {d}, {r} {e} {o}.
So far the {n} has been {p} {k} times, {d} by {N} from {W}.
`)

var englishQuestions = parseTemplates(`
{q} {h} {n} {v} the {a} {n} of the {N}?
{q} the {a} {n} in {W}, and say what the {N} should {b} first.
{q} {h} {N} {p} the {n} in {y}, in about {k} points.
{q} the {n} of {m} {N} in {t}; what would it take to {b} it?
`)
