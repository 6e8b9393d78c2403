"""Language data of the sentence splitter: abbreviations and words that begin sentences."""

from __future__ import annotations

from dataclasses import dataclass, field


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Language:
    """Word lists, abbreviations without their last stop and in lower case.

    `titles` precede a name and never end a sentence; nor do `inner` ones. `numbered` do not end one
    before a number. `ending` (`etc.`, `Inc.`) and abbreviations with inner stops (`U.S.`) end one
    if a word of `starters` follows. `reporting` verbs follow a quotation whose question or
    exclamation does not end the sentence; `cries` are names with an exclamation mark. `proper`:
    abbreviations that are also words (`Sun.`, `Rep.`) count only with a capital. `calendar`: names
    of months and days of the week, in lower case.
    """

    titles: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    ending: frozenset[str] = frozenset()
    starters: frozenset[str] = frozenset()
    reporting: frozenset[str] = frozenset()
    cries: frozenset[str] = frozenset()
    proper: frozenset[str] = frozenset()
    calendar: frozenset[str] = frozenset()
    abbreviations: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        known = self.titles | self.inner | self.numbered | self.ending
        object.__setattr__(self, "abbreviations", known)


ENGLISH = Language(
    titles=_words(
        "mr mrs ms mx dr drs prof profs rev fr hon pres gov gen sen rep reps sens messrs mme mlle "
        "sgt capt cpt lt lieut col cmdr adm maj cpl pvt supt det insp sr st ste mt ft amb atty dir "
        "vp wm thos chas geo jas jno robt benj edw"
    ),
    inner=_words("e.g i.e eg ie viz cf vs v ca approx incl esp resp a.k.a aka attn conf ps p.s"),
    numbered=_words(
        "no nos nr vol vols p pp ch chap fig figs sec sect art arts eq eqs ex op ph tel fax mob "
        "ext vers ver pt pts par para app tab l ll b c d m r fl div "
        "jan feb mar apr jun jul aug sep sept oct nov dec"
    ),
    ending=_words(
        "etc al inc co corp ltd llc bros jr esq dept univ assn ave blvd rd hwy bldg est avg "
        "mon tue tues wed thu thur thurs fri sat sun spec rec ed eds trans repr rev ibid "
        "govt intl natl mfg mgmt tech oz lb lbs hr hrs mins secs yr yrs wk wks ann "
        "ala ariz ark calif colo conn del fla ga ill ind kan ky mass mich minn mont neb nev okla "
        "ore pa penn tenn tex va vt wash wis wyo"
    ),
    starters=_words(
        "the this that these those there then they their he she his her it its we our you your "
        "i my in on at for from by with as if when while after before since because although "
        "though but and or so however moreover also what who where why how which is are was "
        "were do does did can could will would should may let please no yes not some many most "
        "all one two both each every any another other such here now today once during under "
        "according about despite a an to of i'm i've i'll it's that's there's he's she's we're "
        "they're don't thanks thank finally instead first well yet perhaps nothing never ha oh"
    ),
    reporting=_words(
        "said says say asked replied cried answered exclaimed whispered shouted murmured "
        "muttered returned continued added observed remarked inquired enquired demanded called "
        "began repeated interrupted responded thought growled gasped sighed laughed screamed "
        "yelled snapped declared protested ejaculated"
    ),
    cries=_words("yahoo jeopardy"),
    proper=_words(
        "sun sat fri wed mon mar dec jun gen gov rep reps sen fr mt ft dir hon col det capt adm "
        "maj pres rev ala ark calif colo conn del fla ga ill ind kan ky mass mich minn mont neb "
        "okla ore pa penn tenn tex va vt wash wis ed art par app ex op conf"
    ),
    calendar=_words(
        "january february march april may june july august september october november december "
        "jan feb mar apr jun jul aug sep sept oct nov dec "
        "monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun"
    ),
)

SPANISH = Language(
    titles=_words(
        "sr sra srta sres dr dra d dña prof profa ud uds vd vds gral cap lic ing sto sta"
    ),
    inner=_words("p.ej ej cf vs aprox"),
    numbered=_words("no núm nº pág págs p pp art cap vol fig tel t"),
    ending=_words("etc ee.uu ee a.c d.c a.m p.m s.a cía avda"),
    starters=_words(
        "el la los las lo un una en de a y o pero si no se es su sus con por para que como cuando "
        "este esta esto estos estas él ella ellos nosotros yo tú al del más también sin"
    ),
    reporting=_words("dijo preguntó respondió gritó exclamó murmuró contestó añadió"),
)

GENERIC = Language(
    titles=ENGLISH.titles | SPANISH.titles | _words("mme mlle hr fr dott sig"),
    inner=_words("e.g i.e vs cf z.b d.h u.a p.ex bijv"),
    numbered=_words("no nr p pp vol fig art s"),
    ending=_words("etc inc co ltd usw ecc"),
)

LANGUAGES = {"en": ENGLISH, "es": SPANISH}
