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
		village vineyard visitor wall water weather winter workshop writer yard
		accident account agency airline album alley alliance ambition apartment appeal arrival atlas attic audience
		author autumn avenue balance balcony ballot barn basin beach bench bicycle border boundary bottle branch
		breeze bridgehead building cabin cable calendar campaign canal candidate canyon carpet castle catalogue
		cathedral cellar ceremony chapter charter chimney choir cinema circle citizenship cliff climate clock coast
		collection college colony column comment company complaint concert conference conflict copy corridor
		cottage country courtyard crane crew crossing culture current curtain custom dam debate decade decision
		deposit desert diary diet document drawing dream drought duty economy edition election elevator employer
		envelope estate evening excuse exhibition expedition experiment fabric fence ferry fire fishery flood floor
		footpath fountain frontier fuel furnace gallery gate glacier goal grain greenhouse guideline hall handbook
		harvest heating hedge hill hotel household hypothesis incident income inquiry insurance interview invention
		inventory invitation invoice kingdom label ladder lake landscape lantern lease legend lighthouse line
		liquid loan locomotive lounge luggage manuscript margin marriage medal medicine menu metal migration mirror
		mission monastery monument motion mud myth neighbourhood notebook novel oak objection opera opinion
		optician outline oven palace parade paragraph parish path pavement payment peace pension petition
		photograph pier pilot plaza poem pond portrait post prison prize profit prospect province publication pump
		quarry queue radio rainfall receipt recipe reception rehearsal rent replacement reply republic rescue
		restaurant ring roof room rumour safety salary satellite scene scholarship screen sculpture seaside
		sentence shelf shelter shop shore silence singer skill slope snow solution song speech sponsor stage
		staircase statue stock stone stove suburb sugar surface swamp symbol table tariff telescope tenancy theme
		threshold ticket tide timber title tomb topic tournament tractor translation treasury tribe trip truck
		valuation vessel victory voice vote voyage waiting warehousing wharf wheat wheel window witness wood
		workforce wreck yield zone`,
	'N': `teams reports customers engineers farmers residents teachers suppliers patients visitors drivers analysts
		managers students researchers inspectors neighbours readers operators volunteers designers investors nurses
		pilots officials tenants owners editors members experts families musicians builders gardeners lawyers
		merchants observers passengers painters planners scholars sailors technicians translators workers
		actors advisers apprentices architects artists auditors authors bakers bankers beekeepers brewers brokers
		butchers candidates captains carpenters chemists children climbers clerks coaches collectors colleagues
		commuters composers cooks councillors couriers critics cyclists dancers dealers delegates dentists
		diplomats directors divers electricians employees envoys executives fishermen foresters geologists
		governors guests guides heirs historians hunters innkeepers interpreters journalists keepers landlords
		librarians mechanics ministers opponents parents pensioners philosophers plumbers poets porters printers
		producers professors pupils rangers refugees reporters retailers riders shepherds singers soldiers
		statisticians surgeons surveyors tailors taxpayers tourists traders trainers travellers treasurers voters
		waiters wardens weavers witnesses workmen`,
	'v': `describes explains supports improves replaces follows limits changes protects measures compares requires
		confirms delays simplifies extends reflects covers contradicts completes attracts balances concerns defines
		develops divides drives enables exceeds funds guides helps hides illustrates influences involves
		links maintains manages notes offers outlines permits predicts prevents produces promises raises reaches
		records reduces rejects repeats reports resists restores reveals serves shapes shares shows solves starts
		stores studies suggests tests traces transforms treats underlines uses values widens
		accepts accompanies affects anticipates approaches assists assumes avoids blocks borders broadens causes
		challenges clarifies complements complicates conceals confuses contains controls corrects demands denies
		deserves determines disturbs dominates encourages endangers escapes exposes favours forces forms governs
		ignores imitates impresses inspires interrupts invites joins justifies lengthens matches mirrors modifies
		needs obstructs occupies opposes outlasts outweighs overlooks postpones preserves prolongs proves recalls
		regulates resembles respects restricts revives rewards ruins shortens softens spoils stabilises strengthens
		suits surprises surrounds survives sustains threatens touches undermines unites weakens welcomes`,
	'p': `reviewed finished postponed questioned accepted rebuilt discovered published repaired recorded presented
		rejected collected doubled halved approved prepared tested moved closed opened financed documented
		redesigned abandoned adjusted analysed announced assembled borrowed checked cleaned combined considered
		corrected counted delivered described discussed drafted examined expanded explained explored found gathered
		identified ignored inspected installed introduced labelled launched learned listed mapped mentioned
		monitored named negotiated noticed observed ordered organised painted planned printed protected purchased
		raised received reduced released removed renamed repeated replaced requested restored saved shared shipped
		signed simplified sorted studied summarised surveyed tracked translated updated visited watched weighed wrote
		admired altered appointed attended avoided bought built celebrated challenged chosen claimed classified
		commissioned compared completed computed confirmed constructed copied criticised decorated defended delayed
		demolished designed displayed divided donated drawn edited elected emptied enlarged estimated evacuated
		exchanged excluded exported expected filmed forgotten founded framed granted hired imported inherited
		insured interviewed invented isolated justified kept lent licensed limited linked loaded located maintained
		managed marked merged modernised modified multiplied owned packed paid photographed polished praised
		preserved promised promoted proposed proved ranked read recommended recruited recycled regarded registered
		regretted repainted resumed revised rewarded sealed searched selected separated shown sketched sold split
		stored strengthened supplied supported suspected taught tolerated transferred transformed trusted
		understood used voted washed withdrawn`,
	'b': `reduce improve explain measure protect replace understand finish compare avoid describe support extend
		share repair plan test simplify organise predict record review deliver manage balance build check collect
		control defend develop discover explore finance follow guide handle inspect keep limit maintain move
		negotiate observe open prepare present preserve prevent produce publish raise reach rebuild recover restore
		schedule select separate solve store strengthen study teach track train translate update
		abandon accept adapt adjust admire analyse answer approve assess attract ban borrow broaden buy cancel
		carry challenge change choose clean close combine complete conceal confirm connect consider construct
		correct cover cross decorate define demolish deny design destroy divide document donate double draw earn
		edit enlarge enter estimate evaluate examine exchange exclude face fill find fix forget form found fund
		gather govern grant heat hide hire identify ignore imagine import inherit insure interpret introduce invent
		invite isolate judge justify launch learn lend lift light load locate lose mark match merge modernise name
		need offer order own paint pay photograph postpone praise prolong promote propose prove question rank
		reform refuse regard register regret regulate reject release remember remove rename rent reorganise repeat
		replant resist revise reward save search see seize sell settle shape show shrink sketch spare split sponsor
		stabilise steer stop supply surround survey suspend tackle tax tolerate trace trade transform trust use
		value visit vote weigh widen withdraw`,
	'a': `small new local early quiet careful annual public recent simple complex reliable expensive temporary
		permanent narrow modern regional technical final several unusual ordinary important independent older
		separate common practical remote seasonal detailed direct distant dry efficient empty familiar flexible
		formal fragile fresh gradual heavy hidden honest industrial informal initial internal late light limited
		long manual marginal mild mixed mutual natural neutral northern open original outdoor partial patient plain
		popular precise previous private proper rapid rare rough rural safe secondary serious severe shallow sharp
		short silent similar single slow smooth southern special stable steady strict strong sudden suitable
		technical tall thick thin traditional typical urban useful visible warm western wide wooden young
		abstract accurate active adequate ambitious amusing ancient annoying anonymous arable artificial attractive
		average awkward bare basic beautiful bitter blank bold brief bright brilliant brisk broad broken busy calm
		central charming cheap cheerful circular civil classic clean clear clever cloudy coarse coastal cold
		colourful comfortable compact complete conventional cool costly crowded cruel curious customary damp
		dangerous dark dear decent deep deliberate delicate dense desirable dim disappointing domestic doubtful
		dramatic dull eager eastern elaborate elegant enormous essential exact excellent exotic explicit exposed
		fair faithful false famous fashionable faint favourable fertile fierce fine firm flat forgotten former
		fortunate free frequent frozen generous gentle genuine glad gloomy graceful grand grateful grey handsome
		harmless harsh healthy helpful high historic hollow hot huge humble ideal illegal impossible impressive
		inner innocent intense inland invisible isolated joint keen large lasting lazy liberal literary lively
		lonely loose loud lovely low loyal magnificent major maritime massive mature medieval minor missing mobile
		moist monthly muddy musical mysterious native neat noble nearby noisy notable odd official old optional
		orderly outer overdue pale peaceful peculiar perfect plausible pleasant polite poor positive powerful
		pretty primitive profitable prominent promising proud pure quaint random raw ready remarkable respectable
		rich rigid ripe robust romantic round rude sad scarce scattered scientific secret select sensible shabby
		shaded shy silly sober social solid sour spacious spare splendid square steep sticky straight strange
		striking stubborn subtle sunny superb surprising suspicious sweet swift systematic temperate tender tidy
		tight tiny tough tragic tropical ugly unfinished unique unlikely upper vacant vague valuable vast violent
		vital vivid voluntary weak wealthy weekly wet wild wise worthy`,
	'd': `quickly slowly carefully often rarely usually nearly almost clearly quietly directly mostly partly roughly
		eventually recently steadily barely briefly broadly closely deeply easily equally exactly fairly finally
		firmly formally freely fully generally gently gradually hardly largely lightly merely openly plainly poorly
		possibly precisely probably properly publicly quite really regularly seldom sharply simply smoothly strongly
		surely widely
		absolutely accurately actively apparently automatically badly boldly calmly cautiously certainly cheaply
		closer collectively comfortably commonly completely consciously consistently constantly correctly curiously
		daily definitely deliberately doubtless eagerly effectively elegantly entirely especially evidently
		faithfully finely fortunately frequently generously gladly gratefully happily heavily honestly immediately
		inevitably initially instantly intentionally jointly kindly lately locally loudly mainly mechanically
		mildly namely naturally neatly necessarily never normally notably obviously occasionally officially once
		otherwise particularly patiently peacefully perfectly permanently presumably previously primarily privately
		promptly purely rapidly readily reluctantly remarkably repeatedly reportedly respectfully safely seemingly
		separately seriously severely silently similarly sincerely skilfully slightly softly solely somewhat soon
		specially spontaneously still strictly subsequently successfully suddenly sufficiently systematically
		technically temporarily thoroughly tightly together totally traditionally twice typically ultimately
		unexpectedly unfortunately unusually urgently violently voluntarily willingly wisely`,
	't': `January|February|March|April|May|June|July|August|September|October|November|December|last spring|early autumn|
		the second quarter|the following week|the end of the year|the first month|late winter|the summer of that year|
		the harvest|that evening|the second week of May|the dry season|the mid-nineties|early morning|Easter|
		the previous decade|the school holidays|the third year|the night of the storm|midsummer|
		the last days of the month|the rainy months|the weekend|the opening week|New Year|the late afternoon|
		the weeks before the vote|the long frost`,
	'c': `However|In addition|For example|As a result|Meanwhile|By contrast|In practice|After that|Even so|At first|
		On the other hand|More recently|For this reason|In most cases|Until then|From a distance|According to the notes|
		Under normal conditions|In the same period|Without that|Over time|Strictly speaking|Once again|To begin with|
		All the same|As a rule|At the same time|Be that as it may|By the end|Curiously|Elsewhere|For a while|
		From then on|In any case|In fact|In his letters|In other words|In short|In spite of this|In the long run|
		In the north|In theory|Instead|Judging by the accounts|Later|Little by little|Looking back|Nevertheless|
		Nonetheless|Not surprisingly|Now and then|Of course|On average|On closer inspection|On paper|Oddly enough|
		Otherwise|Sooner or later|Still|Then|Thanks to a gift|That said|To some extent|To this day|Two years on|
		Understandably|With hindsight|Within a month`,
	'r': `because|although|while|so that|until|after|before|since|even though|unless|as long as|whenever`,
	'e': `the cost|the delay|the quality of the work|the number of errors|the demand|the available space|
		the amount of water|the response time|public interest|the risk|the temperature|the average price|
		the length of the queue|the level of noise|the share of repeat visits|the distance|the energy used|
		the amount of dust|the attendance|the birth rate|the brightness of the lamps|the chance of rain|
		the colour of the water|the debt|the depth of the snow|the duration of the visits|the failure rate|
		the flow of goods|the fear of fire|the growth of the town|the height of the waves|the interest rate|
		the load|the mood of the crowd|the need for repairs|the pace of work|the pressure in the pipes|the rent|
		the size of the crop|the speed of the wind|the strength of the beams|the supply of coal|
		the taste of the wine|the traffic|the turnover|the value of the land|the volume of letters|the wage bill|
		the yield per field`,
	'o': `rose|fell|stayed the same|changed|doubled|dropped|improved|became harder to explain|was lower than expected|
		returned to normal|grew|varied from day to day|could not be measured|matched the forecast|levelled off|
		began to fall again|came as a surprise|could be seen from afar|crept upwards|did not matter much|
		exceeded every estimate|faded|fell by half|had never been higher|hardly moved|kept falling|
		kept pace with prices|made a difference|mattered less|peaked early|proved hard to predict|ran out|
		recovered within weeks|reached a limit|settled down|shrank|slowed|soon became unbearable|
		spread to the suburbs|surprised everyone|swung back|tripled|turned out well|was hard to believe|
		was left out of the record|was no longer disputed|went unnoticed|worsened`,
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
Between {W} and {W} lies a {a} {n}, {d} {p} by {N}.
No one {p} more than {m} of them, and most {N} {p} none.
Half of the {N} wanted to {b} the {n}; the others would rather {b} it.
It was {W} who first {p} a {n} with {k} {N} and a {a} {n}.
Why the {n} was ever {p} is not known, though {W} wrote of {a} {N}.
By {t}, all but {k} of the {N} had {p} their {n}.
Anyone who hopes to {b} such a {n} should {b} the {n} first.
{e} {o}, and with it {e}.
{c}, what {v} a {n} also {v} its {n}.
{W} disagreed: a {n}, he wrote, {v} nothing that is {a}.
Rather than {b} the {n}, they {p} {m} {N} from {W}.
On {k} occasions since {y} the {n} has {d} been {p}.
One {n} in {k} was {p}; {x} of those belonged to {N}.
There is a {a} {n} at {W} which the {N} still use to {b} their {n}.
As {e} {o}, fewer {N} came to {b} the {n}.
His {n}, {a} as it was and {p} by {N} and {N} alike, was {d} lost in {y}.
Only {N} with a {n} may {b} it, and then for {k} hours at most.
The report names {k} {N}: those who {p} the {n}, and those who {d} {p} it.
A {a} {n} is worth more than {m} {a} ones.
After {k} years of {a} work, the {n} was {p} at a cost of {m}.
Visitors find the {n} {a}, the {n} {a} and the {N} {a}.
Some {N} keep a {n} for {t}, others {b} theirs in {t}.
Nothing in the {n} of {y} {v} this {n}.
"Is that {a}?" asked {W}. "Less so than the {n} that we {p} in {t}."
Seen from {W}, the {n} looks {a}; up close, it is {d} {a}.
`)

var englishQuestions = parseTemplates(`
{q} {h} {n} {v} the {a} {n} of the {N}?
{q} the {a} {n} in {W}, and say what the {N} should {b} first.
{q} {h} {N} {p} the {n} in {y}, in about {k} points.
{q} the {n} of {m} {N} in {t}; what would it take to {b} it?
`)
