"""The Penn Treebank family: raw texts, trees, PDTB 2 in both formats, RST-DT."""

from __future__ import annotations

from functools import cache
from itertools import chain
from pathlib import Path

from spacy.language import Language

from extract import embedded
from tests.miniature.prose import IMPLIED, Prose, Span, Story, words

SECTIONS = range(25)
RULE = "_" * 56
RELATIONS = words(
    "elaboration-additional attribution contrast cause circumstance condition list sequence "
    "temporal-after background example purpose evaluation-s explanation-argumentative same- "
    "unit comparison topic-shift manner"
)
FEATURES = "Wr, Comm, Null, Null"


def write_penn(folder: Path, articles: int, seed: int = 1) -> None:
    """`articles` articles of each section 00 to 24, in every form."""
    prose = Prose(seed)
    for section in SECTIONS:
        for number in range(1, articles + 1):
            name = f"wsj_{section:02d}{number:02d}"
            story = prose.story(paragraphs=4, length=4)
            raw, places = raw_text(story)
            below = Path(f"{section:02d}")
            for place in (folder / "ptb/raw/wsj", folder / "pdtb2/raw", folder / "pdtb2-pipe/raw"):
                put(place / below / name, raw)
            relations = relations_of(story, places, prose)
            blocks = "".join(block(raw, *relation) for relation in relations)
            put(folder / "pdtb2/gold" / below / f"{name}.pdtb", blocks)
            lines = "".join(
                pipe(raw, section, number, sentence, *relation)
                for sentence, relation in enumerate(relations)
            )
            put(folder / "pdtb2-pipe/gold" / below / f"{name}.pipe", lines)
            put(folder / "ptb/conllu" / below / f"{name}.conllu", trees(story, name))
            if 6 <= section <= 23:
                part = "TEST" if section in (6, 11, 13, 23) else "TRAINING"
                rst(
                    folder / "rst_discourse_treebank/data/RSTtrees-WSJ-main-1.0" / part, name, story
                )


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def raw_text(story: Story) -> tuple[str, list[int]]:
    """The article as the treebank has it, a sentence a line, and where each sentence begins."""
    text, places = ".START \n\n", []
    for paragraph in story.paragraphs:
        for sentence in paragraph:
            places.append(len(text))
            text += sentence.text + "\n"
        text += "\n"
    return text, places


Row = tuple[str, str, str, Span | None, Span, Span]
"""Kind, connective, sense, the connective's span, both arguments' spans."""


def relations_of(story: Story, places: list[int], prose: Prose) -> list[Row]:
    """Explicit relations of the connectives, implicit ones between sentences without any."""
    rows: list[Row] = []
    paragraphs = [len(paragraph) for paragraph in story.paragraphs]
    heads = {sum(paragraphs[:k]) for k in range(len(paragraphs))}
    for k, sentence in enumerate(story.sentences):
        before = (places[k - 1], places[k - 1] + len(story.texts[k - 1]) - 1) if k else (0, 0)
        start = places[k]
        if sentence.connective:
            first = moved(sentence.first, start) if sentence.first else before
            marker, second = moved(sentence.marker, start), moved(sentence.second, start)
            rows.append(("Explicit", sentence.connective, sentence.sense, marker, first, second))
        starts = sentence.connective and sentence.first is None
        if k not in heads and not starts:
            connective, sense = prose.random.choice(IMPLIED)
            second = (start, start + len(sentence.text) - 1)
            rows.append(("Implicit", connective, sense, None, before, second))
    return rows


def moved(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


def block(
    raw: str, kind: str, connective: str, sense: str, marker: Span | None, first: Span, second: Span
) -> str:
    """A relation of a `.pdtb` file."""
    where = f"{marker[0]}..{marker[1]}\n0,0\n" if marker else f"{second[0]}\n1\n"
    text = f"#### Text ####\n{raw[slice(*marker)]}\n##############\n" if marker else ""
    head = f"{RULE}\n____{kind}____\n{where}{text}#### Features ####\n{FEATURES}\n"
    head += f"{connective}, {sense}\n"
    for part, span in (("Arg1", first), ("Arg2", second)):
        quoted = f"#### Text ####\n{raw[slice(*span)]}\n##############\n"
        head += f"____{part}____\n{span[0]}..{span[1]}\n0,0\n{quoted}"
        head += f"#### Features ####\n{FEATURES.replace('Wr', 'Inh')}\n"
    return f"{head}{RULE}\n"


def pipe(
    raw: str,
    section: int,
    number: int,
    sentence: int,
    kind: str,
    connective: str,
    sense: str,
    marker: Span | None,
    first: Span,
    second: Span,
) -> str:
    """The same relation with 48 fields."""
    fields = [""] * 48
    fields[0], fields[1], fields[2] = kind, f"{section:02d}", f"{number:02d}"
    if marker:
        fields[3], fields[5], fields[8] = span_of(marker), raw[slice(*marker)], connective
    else:
        fields[6], fields[7], fields[9] = str(second[0]), str(sentence), connective
    fields[11] = sense
    fields[15:19] = ["Wr", "Comm", "Null", "Null"]
    fields[22], fields[24] = span_of(first), raw[slice(*first)].replace("\n", " ")
    fields[32], fields[34] = span_of(second), raw[slice(*second)].replace("\n", " ")
    return "|".join(fields) + "\n"


def span_of(span: Span) -> str:
    return f"{span[0]}..{span[1]}"


@cache
def parser() -> Language:
    return embedded.load()


def trees(story: Story, name: str) -> str:
    """The embedded parser's trees of the sentences, in CoNLL-U."""
    lines = [f"# newdoc id = {name}"]
    docs = list(map(parser().make_doc, story.texts))
    for doc in docs:
        for token in doc:
            token.is_sent_start = token.i == 0
    for k, (text, tree) in enumerate(zip(story.texts, parser().pipe(docs), strict=True), 1):
        lines += [f"# sent_id = {name}-{k}", f"# text = {text}"]
        for token in tree:
            head = 0 if token.head == token else token.head.i + 1
            misc = "_" if token.whitespace_ else "SpaceAfter=No"
            cells = (token.i + 1, token.text, token.lower_, token.pos_, token.tag_, "_", head)
            lines.append("\t".join(map(str, (*cells, token.dep_, "_", misc))))
        lines.append("")
    return "\n".join(lines) + "\n"


def rst(folder: Path, name: str, story: Story) -> None:
    """A right-branching tree over the clauses, with the raw text and the EDUs beside it."""
    edus: list[str] = []
    for paragraph in story.paragraphs:
        clauses = list(chain.from_iterable(sentence.clauses for sentence in paragraph))
        edus += [*clauses[:-1], clauses[-1] + "<P>"]
    raw = "\n\n".join("\n".join(s.text for s in paragraph) for paragraph in story.paragraphs)
    put(folder / f"{name}.out", raw + "\n")
    put(folder / f"{name}.out.edus", "".join(f"    {edu.removesuffix('<P>')}\n" for edu in edus))
    put(folder / f"{name}.out.dis", tree_of(edus, "Root", "", 1) + "\n")


def tree_of(edus: list[str], role: str, relation: str, first: int, indent: int = 0) -> str:
    """The bracketed tree of the EDUs from number `first` on."""
    space, named = "  " * indent, f" (rel2par {relation})" if relation else ""
    if len(edus) == 1:
        return f"{space}( {role} (leaf {first}){named} (text _!{edus[0]}_!) )"
    last = first + len(edus) - 1
    label = RELATIONS[(first * 7 + len(edus)) % len(RELATIONS)]
    head = f"{space}( {role} (span {first} {last}){named}"
    shape = (first + len(edus)) % 3
    roles = (("Nucleus", "Satellite"), ("Satellite", "Nucleus"), ("Nucleus", "Nucleus"))[shape]
    cut = 1 + (first % 2) * (len(edus) > 2)
    parts = []
    for part, role_of, start in (
        (edus[:cut], roles[0], first),
        (edus[cut:], roles[1], first + cut),
    ):
        mono = role_of == "Nucleus" and "Satellite" in roles
        parts.append(tree_of(part, role_of, "span" if mono else label, start, indent + 1))
    return "\n".join([head, *parts, f"{space})"])
