"""Whatever the tree: the matcher ends, spans lie in the text, S1 and S2 never overlap."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.document import Document, Spans, Tokens
from extract import Extractor, Reject

MARKERS = ("and", "but", "if", "then", "so", "because", "when", "for example", "if ... then")
WORDS = [
    "and", "but", "if", "then", "so", "that", "even", "though", "when", "as", "well", "not", "only",
    "also", "because", "he", "runs", "tree", ",", "(", "”", ".", "?", "for", "example",
    "שלום", "👍🏽",
]  # fmt: skip
LABELS = [
    "root", "nsubj", "cc", "conj", "mark", "advmod", "advcl", "acl:relcl", "parataxis", "xcomp",
    "punct", "cop", "aux", "discourse", "obl", "ccomp", "orphan", "never:seen",
]  # fmt: skip
TAGS = ["VERB", "NOUN", "AUX", "PUNCT", "ADV", ""]


@st.composite
def trees(draw: st.DrawFn) -> Document:
    """A document of random sentences: any labels, any heads without a cycle, shared spans."""
    tokens, spans, parts, position = Tokens(), Spans(), [], 0
    for _ in range(draw(st.integers(1, 4))):
        base, begin = len(tokens), position
        size = draw(st.integers(1, 14))
        order = draw(st.permutations(range(size)))
        for place in range(size):
            rank = order.index(place)
            parent = draw(st.integers(-1, rank - 1)) if rank else -1
            tokens.head.append(base + order[parent] if parent >= 0 else -1)
            form = draw(st.sampled_from(WORDS))
            if place and draw(st.integers(0, 9)) == 0:
                tokens.start.append(tokens.start[-1])
                tokens.end.append(tokens.end[-1])
            else:
                tokens.start.append(position)
                tokens.end.append(position + len(form))
                parts.append(form)
                position += len(form) + 1
            tokens.form.append(form)
            tokens.upos.append(draw(st.sampled_from(TAGS)))
            tokens.xpos.append("")
            tokens.feats.append(draw(st.sampled_from(["", "VerbForm=Fin|Tense=Past"])))
            tokens.deprel.append(draw(st.sampled_from(LABELS)))
        tokens.offsets.append(len(tokens))
        spans.add(begin, position - 1)
    return Document(id="random", text=" ".join(parts), tokens=tokens, sentences=spans)


@settings(max_examples=150, deadline=None)
@given(trees(), st.sampled_from(["recall", "require_clause", "own_subjects"]))
def test_the_matcher_is_total(document: Document, mode: str) -> None:
    candidates = {f.lower() for f in document.tokens.form} & {"and", "if", "because", "when"}
    rejects: list[Reject] = []
    extractor = Extractor("gold", MARKERS, mode, on_reject=rejects.append)
    pairs = list(extractor.pairs([document]))
    assert not candidates or pairs or rejects
    for pair in pairs:
        inside = {}
        for name in ("marker_spans", "s1_spans", "s2_spans"):
            spans = getattr(pair, name)
            assert spans
            assert all(0 <= a < b <= len(document.text) for a, b in spans)
            assert list(spans) == sorted(spans)
            inside[name] = {i for a, b in spans for i in range(a, b)}
        assert not inside["s1_spans"] & inside["s2_spans"]
        assert not inside["s2_spans"] & inside["marker_spans"]
        assert pair.s1 and pair.s2
