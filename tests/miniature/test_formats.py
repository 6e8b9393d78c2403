"""The made-up corpora are in the formats that the readers know: every record is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corpora.document import Relation
from corpora.readers import open_source
from corpora.readers.coherence import read_pairs
from corpora.readers.pdtb import read_gold
from tests.miniature.backbones import write_backbones
from tests.miniature.hub import write_dump, write_hub
from tests.miniature.penn import SECTIONS, write_penn
from tests.miniature.released import write_coherence, write_discoeval, write_superglue

COLUMNS = {"layout": "document"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("miniature")
    write_penn(folder, articles=1)
    write_discoeval(folder, examples=6)
    write_coherence(folder, examples=6)
    write_superglue(folder, examples=4)
    write_hub(folder, documents=6)
    write_dump(folder, documents=6)
    return folder


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("wsj:ptb/raw/wsj", {}),
        ("conllu:ptb/conllu", {}),
        ("pdtb:pdtb2", {}),
        ("pdtb:pdtb2-pipe", {}),
        ("rst:rst_discourse_treebank/data/RSTtrees-WSJ-main-1.0", {}),
        ("discoeval:DiscoEval/data/BSO", {}),
        ("rocstories:rocstories", {}),
        ("storycloze:storycloze", {}),
        ("summeval:summeval", {}),
        ("insted:INSteD", {}),
        ("superglue:superglue", {}),
        ("hub:hub/wikipedia", COLUMNS),
        ("hub:hub/cc_news", COLUMNS),
        ("wikipedia:wikipedia", {}),
        ("hub:hub/bookcorpus", {"layout": "lines", "document_lines": 12}),
    ],
)
def test_a_reader_reads_every_record(folder: Path, spec: str, options: dict[str, Any]) -> None:
    kind, _, place = spec.partition(":")
    documents = list(open_source(f"{kind}:{folder / place}", options))  # a bad record raises
    assert len(documents) > 5 and all(len(document.text) > 20 for document in documents)


def test_both_forms_of_pdtb_give_the_relations_of_the_text(folder: Path) -> None:
    blocks, pipes = ([*read_gold(folder / name)] for name in ("pdtb2", "pdtb2-pipe"))
    assert len(blocks) == len(SECTIONS) == len(pipes)
    for one, other in zip(blocks, pipes, strict=True):
        assert one.relations and other.relations
        assert [without_place(row) for row in one.relations] == [
            without_place(row) for row in other.relations
        ]
        for row in one.relations:
            words = [one.text[a:b].lower() for a, b in row.connective_spans]
            assert row.kind == "Implicit" or words == [row.connective]
    kinds = Counter(row.kind for document in blocks for row in document.relations or ())
    assert min(kinds["Explicit"], kinds["Implicit"]) > 2 * len(SECTIONS)


def without_place(row: Relation) -> tuple[Any, ...]:
    return (
        row.kind,
        row.connective,
        row.connective_spans,
        row.arg1_spans,
        row.arg2_spans,
        row.senses,
    )


def test_the_pickles_of_the_coherence_paper(folder: Path) -> None:
    released = folder / "coherence-paradigm/independent_test_sets"
    for path in sorted(released.rglob("*.pkl")):
        if not path.stem.endswith("_Annotations"):
            pairs = list(read_pairs(path))
            assert len(pairs) >= 3 and all(pair.pos != pair.neg for pair in pairs)
    assert all(len(pair.votes) == 3 for pair in read_pairs(released / "LMvLM.pkl"))


def test_the_backbones_load(tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    write_backbones(tmp_path)
    for path in sorted((tmp_path / "backbones").iterdir()):
        tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path)
        encoded = tokenizer("the old keeper painted the gate", return_tensors="pt")
        assert tokenizer.unk_token_id not in encoded["input_ids"]
        assert model(**encoded).last_hidden_state.shape[-1] == 16
