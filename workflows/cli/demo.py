"""`discorpora demo`: the steps of extraction on a text: trees, patterns, pairs, confidences."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpora.errors import InputError
from corpora.terminal import plain
from workflows.cli.common import Json, Language, Markers, Parser, Patterns, print_json

if TYPE_CHECKING:
    from rich.tree import Tree

    from corpora.document import Document
    from extract.pairs import Pair
    from extract.parse import ParsedDocument

STYLES = {"marker": "bold magenta", "S1": "cyan", "S2": "green"}


def demo(
    text: Annotated[str, typer.Argument(help="One or more sentences; `-` reads from stdin.")],
    parser: Parser = "embedded",
    markers: Markers = "all15",
    language: Language = "en",
    mode: Annotated[str, typer.Option(help="standalone, or recall: all pairs.")] = "standalone",
    patterns: Patterns = None,
    as_json: Json = False,
) -> None:
    """Show how a text is parsed, which patterns match, and the pairs with their confidence."""
    from corpora.document import Document
    from corpora.readers.files import Refused
    from corpora.readers.source import join_paragraphs, paragraphs_of
    from extract import Extractor
    from extract.pairs import Reject
    from extract.patterns import load_patterns

    try:
        text, paragraphs = join_paragraphs(
            paragraphs_of(_read_standard_input() if text == "-" else text)
        )
    except Refused as refusal:
        raise InputError(str(refusal), hint="give the text in UTF-8") from None
    if not text:
        raise InputError("the text is empty", hint='give a text: discorpora demo "It rained."')
    # Without the filter the parser also takes sentences that have no marker.
    options: dict[str, Any] = {} if parser == "gold" else {"prefilter": None}
    rejects: list[Reject] = []
    options |= {"on_reject": rejects.append, "patterns": patterns or ()}
    extractor = Extractor(parser, markers, mode, language, **options)
    document = Document("text", text, language=language, paragraphs=paragraphs)
    (columns,) = extractor.columns([document])
    pairs = list(columns.pairs())
    sentences = _sentences(columns.batch.documents[0], columns.batch.parses[0])
    if as_json:
        results = {"pairs": [asdict(p) for p in pairs], "rejects": [asdict(r) for r in rejects]}
        print_json({"sentences": sentences, **results})
        return
    from rich.console import Console
    from rich.text import Text

    rows = {row.id: row for row in load_patterns(language, files=patterns or ()).patterns}
    out = Console(highlight=False)
    for sentence in sentences:
        out.print(_tree(sentence, pairs))
    for number, pair in enumerate(pairs, 1):
        row = rows.get(pair.pattern)
        confidence = "none for this language"
        if pair.confidence is not None:
            confidence = f"{pair.confidence:.2f}"
        out.print(Text.assemble(f"\npair {number}: ", (pair.marker, STYLES["marker"])))
        out.print(Text.assemble("  ", ("S1", STYLES["S1"]), f"          {pair.s1}"))
        out.print(Text.assemble("  ", ("S2", STYLES["S2"]), f"          {pair.s2}"))
        out.print(plain(f"  confidence  {confidence}"))
        out.print(plain(f"  pattern     {pair.pattern}" + (f": {row.comment}" if row else "")))
        if row:
            out.print(plain(f"  example     {row.example}"))
    for reject in rejects:
        marker = reject.marker, STYLES["marker"]
        row_id = f", pattern {reject.pattern}" if reject.pattern else ""
        out.print(Text.assemble("\nno pair: ", marker, f" ({reject.reason}{row_id})"))
    if not pairs and not rejects:
        out.print(plain(f"\nno pair: the text has none of {', '.join(extractor.markers)}"))


def _read_standard_input() -> str:
    """Read a text from standard input. Raises `InputError` if it is not UTF-8."""
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x} at {error.start + 1:,}"
        hint = "give UTF-8 text"
        raise InputError(f"not UTF-8: {byte}", where="standard input", hint=hint) from None


def _sentences(document: Document, parsed: ParsedDocument) -> list[dict[str, Any]]:
    """Return each parsed sentence with its tokens, each with its head's index there (root: -1)."""
    spans, strings = document.sentences, parsed.strings.strings
    assert spans is not None
    sentences = []
    for row, (begin, end) in zip(parsed.sentence, pairwise(parsed.offsets), strict=True):
        tokens = [
            {
                "form": strings[parsed.form[i]],
                "start": int(parsed.start[i]),
                "end": int(parsed.end[i]),
                "upos": strings[parsed.upos[i]],
                "xpos": strings[parsed.xpos[i]],
                "deprel": strings[parsed.deprel[i]],
                "head": max(-1, int(parsed.head[i] - begin)),
            }
            for i in range(begin, end)
        ]
        text = document.text[spans.start[row] : spans.end[row]]
        sentences.append({"text": text, "tokens": tokens})
    return sentences


def _tree(sentence: dict[str, Any], pairs: Sequence[Pair]) -> Tree:
    """Draw a dependency tree: each word with its relation, part of speech, and roles in pairs."""
    from rich.text import Text
    from rich.tree import Tree

    tokens = sentence["tokens"]
    tree = Tree(plain(sentence["text"]))
    waiting = [(tree, -1)]
    while waiting:
        branch, head = waiting.pop()
        for index, token in enumerate(tokens):
            if token["head"] == head:
                roles = _roles(token, pairs)
                word = token["form"], STYLES[roles[0][0]] if roles else ""
                several = len(pairs) > 1
                notes = "".join(f" [{r} of {n}]" if several else f" [{r}]" for r, n in roles)
                label = Text.assemble(word, f"  {token['deprel']} {token['upos']}{notes}")
                waiting.append((branch.add(label), index))
    return tree


def _roles(token: dict[str, Any], pairs: Sequence[Pair]) -> list[tuple[str, int]]:
    """Return the roles of a token (marker, S1 or S2), each with the number of the pair."""
    roles = []
    for number, pair in enumerate(pairs, 1):
        sides = {"marker": pair.marker_spans, "S1": pair.s1_spans, "S2": pair.s2_spans}
        for role, spans in sides.items():
            if any(start <= token["start"] and token["end"] <= end for start, end in spans):
                roles.append((role, number))
    return roles
