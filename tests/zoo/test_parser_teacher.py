"""The teacher of the embedded parser and its silver trees, with a tiny encoder made on the spot."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from corpora.errors import InputError
from zoo.parser import silver, teacher, train
from zoo.parser.biaffine import (
    RECORD,
    best_tree,
    by_length,
    is_tree,
    load,
    parse,
    shape_of,
    suffix_of,
)
from zoo.parser.treebank import Sentence, sentences_of

from .conftest import write_tiny_bert

TINY = Path(__file__).parent.parent / "data" / "parser" / "tiny.conllu"
STORY = (
    "Nora put the kettle on because it was cold. She did not notice the small boat at first. "
    "Then the boat turned round, and nobody could see it."
)


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return sentences_of([TINY])


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory, sentences: list[Sentence]) -> Path:
    texts = [" ".join(sentence.forms) for sentence in sentences] + [STORY]
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 64}
    return write_tiny_bert(tmp_path_factory.mktemp("backbone"), texts, **sizes)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory, backbone: Path) -> Path:
    output = tmp_path_factory.mktemp("teacher") / "teacher.safetensors"
    paths = ["--treebank", str(TINY), "--dev", str(TINY), "--backbone", str(backbone)]
    settings = ["--epochs", "60", "--batch-places", "200", "--learning-rate", "1e-3", "--no-bf16"]
    assert teacher.main([*paths, "--output", str(output), *settings]) == 0
    return output


def brute_force(scores: np.ndarray) -> float:
    """The best total of all heads that form a tree under one of the three likeliest roots."""
    count = len(scores)
    roots = set(np.argsort(-scores[:, 0])[:3].tolist())
    trees = (np.array(heads) for heads in product(range(count + 1), repeat=count))
    return max(
        scores[np.arange(count), heads].sum()
        for heads in trees
        if (heads == 0).sum() == 1 and int(heads.argmin()) in roots and is_tree(heads)
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_the_best_tree_is_the_best_of_all_trees(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(20):
        scores = np.log(rng.dirichlet(np.full(count + 1, 0.7), size=count) + 1e-9)
        scores[np.arange(count), np.arange(1, count + 1)] = -1e4  # no word heads itself
        heads = best_tree(scores)
        assert (heads == 0).sum() == 1 and is_tree(heads)
        best = scores[np.arange(count), heads].sum()
        assert best == pytest.approx(brute_force(scores))


def test_a_cycle_is_broken_where_it_costs_least() -> None:
    # Word 1 and word 2 each want the other as head; the root takes word 1, which costs less.
    scores = np.log(np.array([[0.4, 1e-9, 0.6], [0.1, 0.9, 1e-9]]))
    assert best_tree(scores).tolist() == [0, 1]


def test_batches_hold_like_lengths_and_everything_once() -> None:
    lengths = dict(enumerate([5, 1, 9, 2, 2, 40, 7]))
    found = by_length(lengths, 20)
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 20


def test_features_of_forms_tell_case_digits_and_endings() -> None:
    assert len({shape_of(form) for form in ("word", "Word", "WORD", "7", "a-b", "A7")}) == 6
    assert suffix_of("walking") == suffix_of("Ring") != suffix_of("walked")


@pytest.mark.slow
def test_a_teacher_learns_its_trees_and_loads_again(
    taught: Path, sentences: list[Sentence]
) -> None:
    model, encoding = load(taught)
    las, uas = teacher.attachment(model, encoding, sentences)
    assert las > 90 and uas >= las
    forms = [sentence.forms for sentence in sentences]
    found = parse(model, encoding, forms, bf16=False)
    assert all(tree is not None and 0 < tree.confidence <= 1 for tree in found)
    again = parse(*load(taught), forms, places=60, bf16=False)
    assert [t and t.heads for t in again] == [t and t.heads for t in found]


@pytest.mark.slow
def test_sentences_beyond_the_encoder_get_no_tree(taught: Path) -> None:
    found = parse(*load(taught), [["boat"] * 200, ["The", "boat"], []])
    assert found[0] is None and found[2] is None
    assert found[1] is not None and found[1].heads.count(-1) == 1


@pytest.mark.slow
def test_silver_trees_are_a_treebank_and_train_the_compact_parser(
    taught: Path, tmp_path: Path
) -> None:
    text = tmp_path / "story.txt"
    text.write_text(STORY + "\n\n" + STORY.upper() + "\n", encoding="utf-8")
    output = tmp_path / "silver.conllu"
    source = ["--source", f"text:{text}", "0"]
    assert silver.main([str(taught), *source, "--output", str(output), "--keep", "1"]) == 0
    found = sentences_of([output])
    assert len(found) == 6
    assert found[0].forms[:3] == ("Nora", "put", "the")
    assert found[0].document == found[2].document  # neighbours stay together
    assert all(sentence.heads.count(-1) == 1 for sentence in found)
    few = tmp_path / "few.conllu"
    assert silver.main([str(taught), *source, "--output", str(few), "--keep", "0.5"]) == 0
    assert 0 < len(sentences_of([few])) < len(found)
    none = tmp_path / "none.conllu"
    options = ["--keep", "1", "--exclude", str(output), "--output", str(none)]
    assert silver.main([str(taught), *source, *options]) == 0
    assert none.read_text() == ""
    small = ["training.max_steps=4", "regularisation.max_steps=2", "finishing.max_steps=2"]
    small.append("components.parser.min_action_freq=1")
    settings = [part for change in small for part in ("--set", change)]
    paths = ["--treebank", str(TINY), "--dev", str(TINY), "--silver", str(output)]
    folder = tmp_path / "parser"
    assert train.main([*paths, "--output", str(folder), *settings]) == 0
    # The documents trained on are those of the treebank; silver trees are named in the record.
    assert (folder / "documents.txt").read_text().split() == ["tale-kettle", "tale-boat"]
    assert "silver.conllu" in (folder / "training.json").read_text()


def test_every_silver_tree_is_seen_before_one_comes_again(sentences: list[Sentence]) -> None:
    total = sum(map(len, sentences))
    parts = train.silver_parts(sentences, total / 3, np.random.default_rng(0))
    documents = {sentence.document for sentence in sentences}
    whole = next(train.silver_parts(sentences, total, np.random.default_rng(1)))
    changes = sum(a.document != b.document for a, b in pairwise(whole))
    assert changes == len(documents) - 1  # neighbours stay neighbours
    seen: list[Sentence] = []
    while len(seen) < len(sentences):
        part = next(parts)
        assert sum(map(len, part)) >= total / 3
        seen += part
    assert set(seen[: len(sentences)]) == set(sentences)
    assert next(train.silver_parts([], 100, np.random.default_rng(0))) == []
    assert next(train.silver_parts(sentences, 0, np.random.default_rng(0))) == []


def test_the_teacher_says_what_is_wrong_and_writes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out"
    good = ["--treebank", str(TINY), "--dev", str(TINY), "--output", str(output)]
    assert teacher.main([*good, "--backbone", str(tmp_path / "none")]) == 2
    assert str(tmp_path / "none") in caplog.text
    assert teacher.main([*good, "--treebank", str(tmp_path / "lost"), "--backbone", "x"]) == 2
    assert f"no treebank at {tmp_path / 'lost'}" in caplog.text
    assert list(tmp_path.iterdir()) == []
    output.write_bytes(b"mine")
    assert teacher.main([*good, "--backbone", "x"]) == 2
    assert f"{output} exists" in caplog.text and output.read_bytes() == b"mine"
    with pytest.raises(InputError, match="holds no teacher"):
        load(output)
    for record in ("{}", "[1]", "junk"):
        save_file({"weight": torch.zeros(1)}, output, {RECORD: record})
        with pytest.raises(InputError, match=r"/out: is (no record|not JSON): "):
            load(output)


def test_a_limit_is_the_most_sentences(
    backbone: Path, sentences: list[Sentence], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    most = len(sentences) - 1
    where = ["--treebank", str(TINY), "--dev", str(TINY), "--backbone", str(backbone)]
    options = ["--output", str(tmp_path / "out"), "--epochs", "1", "--limit", str(most)]
    with caplog.at_level("INFO"):
        assert teacher.main([*where, *options]) == 0
    assert f"{most} sentences, " in caplog.text


def test_silver_names_a_missing_source_and_writes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "silver.conllu"
    source = ["--source", f"text:{tmp_path}/none.txt", "0"]
    assert silver.main([str(tmp_path), *source, "--output", str(output)]) == 2
    assert "none.txt" in caplog.text
    assert silver.main([str(tmp_path), *source[:2], "ten", "--output", str(output)]) == 2
    assert "none.txt ten: expected a number of words" in caplog.text
    assert not output.exists()
