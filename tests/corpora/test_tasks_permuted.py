"""Permuted documents: unique orders, full rows, sentences stored once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations as all_permutations
from math import factorial

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from corpora.document import Document, Spans
from corpora.errors import ConfigError, InputError
from corpora.quotes import quotes_at_ends
from corpora.sentences import split_document
from corpora.store.atomic import staged
from corpora.tasks.builder import Target
from corpora.tasks.permutations import (
    distinct_orders,
    document_keys,
    order_rows,
    permutations,
)
from corpora.tasks.permuted import ROWS_PER_GROUP, Permuted, token_counter
from tests.corpora.conftest import rows_of

IDS = [f"d{i}" for i in range(3000)]
KEYS = document_keys(1, "permuted", IDS[:50])


def drawn(keys: np.ndarray, n: int, k: int) -> np.ndarray:
    """Orders of `n` sentences that all differ."""
    return permutations(
        keys, np.tile(np.arange(n, dtype=np.uint64), (len(keys), 1)), factorial(n), k
    )


def check(orders: np.ndarray, n: int, k: int) -> None:
    """Each document has k different permutations of n sentences, never the original."""
    for document in orders.tolist():
        different = set(map(tuple, document))
        assert len(different) == k and tuple(range(n)) not in different
        assert all(sorted(order) == list(range(n)) for order in different)


# --- drawing permutations ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 10, 15, 19, 20, 21, 40, 255])
@pytest.mark.parametrize("k", [1, 20, 100, 1000])
def test_permutations_are_unique_and_never_the_original(n, k):
    k = min(k, factorial(n) - 1)
    orders = drawn(KEYS[:8], n, k)
    assert orders.shape == (8, k, n) and orders.dtype == np.uint8
    check(orders, n, k)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8])
def test_all_permutations_can_be_asked_for(n):
    orders = drawn(KEYS[:2], n, factorial(n) - 1)
    assert set(map(tuple, orders[1].tolist())) == {*all_permutations(range(n))} - {tuple(range(n))}


def test_a_document_gets_the_same_orders_in_any_company():
    together = drawn(KEYS, 9, 1000)
    assert (together[17] == drawn(KEYS[17:18], 9, 1000)[0]).all()
    assert (drawn(KEYS, 9, 20) == together[:, :20]).all()


def test_other_seeds_stages_and_documents_give_other_orders():
    ways = ((1, "a"), (2, "a"), (1, "b"))
    keys = np.concatenate([document_keys(seed, stage, IDS) for seed, stage in ways])
    assert np.unique(keys).size == 3 * len(IDS)


@pytest.mark.parametrize("n", [4, 10, 25])
def test_every_sentence_is_as_often_at_every_place(n):
    k = 20
    keys = document_keys(3, "uniform", IDS)
    orders = drawn(keys, n, k).reshape(-1, n)
    shares = np.stack([(orders == sentence).mean(axis=0) for sentence in range(n)])
    expected = (factorial(n - 1) - np.eye(n)) / (factorial(n) - 1)  # the original is never drawn
    assert np.abs(shares - expected).max() < 0.01


def test_too_many_are_refused():
    with pytest.raises(ValueError, match="3 sentences have no 6"):
        drawn(KEYS, 3, 6)


@hypothesis_settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=2, max_size=7), max_size=4))
def test_where_sentences_are_equal_the_texts_differ(documents):
    """Each document gets all its orders but the original, whatever stands beside it."""
    ids = IDS[: len(documents)]
    rows = order_rows(KEYS[: len(ids)], ids, documents, lambda total: (total - 1, 1))
    found = rows.to_pylist() if rows else []
    for id, sentences in zip(ids, documents, strict=True):
        orders = [row["orders"][0] for row in found if row["document"] == id]
        texts = {tuple(sentences[i] for i in order) for order in orders}
        assert len(texts) == len(orders) == distinct_orders(sentences) - 1
        assert tuple(sentences) not in texts
    assert [row["document"] for row in found] == sorted(row["document"] for row in found)


# --- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (3, {"pairwise": (5, 1), "contrastive": (1, 5), "ranked": (1, 5)}),
        (4, {"pairwise": (20, 1), "contrastive": (4, 5), "ranked": (1, 23)}),
        (5, {"pairwise": (20, 1), "contrastive": (20, 5), "ranked": (2, 50)}),
        (6, {"pairwise": (20, 1), "contrastive": (20, 5), "ranked": (14, 50)}),
        (7, {"pairwise": (20, 1), "contrastive": (20, 5), "ranked": (20, 50)}),
    ],
)
def test_rows_have_their_full_number_of_negatives(n, expected):
    assert {c: Permuted().rows(c, factorial(n)) for c in expected} == expected


def test_an_unknown_tokenizer_is_an_error_that_says_what_is_possible(tmp_path):
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}")
    with pytest.raises(ConfigError) as caught:
        token_counter(str(broken))
    assert "words" in caught.value.hint


def test_a_tokenizer_counts_tokens_without_padding_or_truncation(tmp_path):
    tokenizer = Tokenizer(WordLevel({"tide": 0, "[PAD]": 1}, "[PAD]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_padding(length=8, pad_id=1)
    tokenizer.enable_truncation(8)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    count = token_counter(str(tmp_path / "tokenizer.json"))
    assert count(["tide", "tide " * 20]) == [1, 20]


# --- the dataset ---------------------------------------------------------------------------------


@pytest.fixture
def documents(make_document):
    lengths = [3, 4, 5, 6, 9, 12, 19, 20, 25, 41]
    return [make_document(f"d{i}", lengths[i % 10], group=f"g{i % 7}") for i in range(60)]


@pytest.fixture
def built(tmp_path, documents, stage):
    def build(name="x", documents=documents, **settings):
        folder = tmp_path / name / "data"
        with staged(folder) as partial:
            return folder, Permuted.of(settings).build(documents, Target(partial, stage, 1))

    return build


def table(folder, config: str, split: str = "*") -> list[dict]:
    files = sorted(folder.glob(f"{config}/{split}-*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_long_documents_become_blocks_and_short_ones_are_left_out(built, documents):
    folder, manifest = built()
    lengths = Counter(len(row["sentences"]) for row in table(folder, "documents"))
    # six of each length: 20 -> 10 10; 25 -> 10 10 5; 41 -> 10 10 10 10 (and 1, left out)
    assert lengths == {4: 6, 5: 12, 6: 6, 9: 6, 12: 6, 19: 6, 10: 6 * 8}
    assert manifest["rejects"]["too_few_sentences"] == 6 + 6
    ids = [row["id"] for row in table(folder, "documents")]
    assert len(set(ids)) == len(ids) and "d7#0" in ids and "d6" in ids


def test_no_permutation_of_a_document_comes_twice(built):
    folder, _ = built()
    length = {row["id"]: len(row["sentences"]) for row in table(folder, "documents")}
    for config in ROWS_PER_GROUP:
        of_document: dict[str, list] = {}
        for row in table(folder, config):
            of_document.setdefault(row["document"], []).append(row)
        for document, rows in of_document.items():
            n = length[document]
            number, negatives = Permuted().rows(config, factorial(n))
            assert [row["repetition"] for row in rows] == list(range(number))
            assert {len(row["orders"]) for row in rows} == {negatives}
            orders = [order for row in rows for order in row["orders"]]
            check(np.array([orders]), n, number * negatives)


def test_a_document_and_its_blocks_are_in_one_split_of_all_configurations(built):
    folder, _ = built()
    where: dict[str, set[str]] = {}
    for split in ("train", "validation", "test"):
        for row in table(folder, "documents", split):
            where.setdefault(row["id"].split("#")[0], set()).add(split)
        for config in ROWS_PER_GROUP:
            for row in table(folder, config, split):
                where[row["document"].split("#")[0]].add(split)
    assert {len(splits) for splits in where.values()} == {1}
    assert set.union(*where.values()) == {"train", "validation", "test"}


def test_documents_are_cut_to_whole_sentences(built, make_document):
    document = make_document("d", 12)
    lengths = np.cumsum([len(s.split()) for s in document.sentence_texts()])
    folder, _ = built(documents=[document], max_tokens=int(lengths[6]) + 1)
    assert len(table(folder, "documents")[0]["sentences"]) == 7
    long = replace(make_document("long", 4), id="long")
    _, manifest = built("two", [document, long], max_tokens=int(lengths[3]) + 1, block_size=5)
    assert manifest["rejects"].get("sentences_too_long", 0) == 0


def test_sentences_too_long_for_the_limit_are_counted(built, make_document):
    _, manifest = built(documents=[make_document("a", 5), make_document("b", 19)], max_tokens=60)
    assert manifest["rejects"] == {} or manifest["rejects"].keys() <= {"sentences_too_long"}


def test_equal_sentences_never_give_the_original_text(built, make_document):
    text = "Yes it is. No it is not. Yes it is. Look over there now."
    cuts = [0, 11, 25, 36, len(text)]
    spans = Spans(cuts[:-1], [end - 1 for end in cuts[1:-1]] + [len(text)])
    document = Document("d", text, licence="MIT", sentences=spans)
    folder, _ = built(documents=[document])
    sentences = table(folder, "documents")[0]["sentences"]
    assert len(sentences) == 4 and len(set(sentences)) == 3
    rows = table(folder, "pairwise")
    texts = {tuple(sentences[i] for i in row["orders"][0]) for row in rows}
    assert len(rows) == len(texts) == 11 and tuple(sentences) not in texts
    assert [len(row["orders"]) for row in table(folder, "ranked")] == [11]


def test_headings_are_no_sentences_of_a_positive(built):
    text = "The Pier\n\nBy Ann Bell\n\nIt is old. It burnt. It was mended. “Go.\n\nNow,” he said."
    document = split_document(Document("d", text, licence="MIT"))
    folder, manifest = built(documents=[document])
    [row] = table(folder, "documents")
    assert row["sentences"][:3] == ["It is old.", "It burnt.", "It was mended."]
    assert row["sentences"][3:] == ["“Go.”", "“Now,” he said."]
    assert manifest["rejects"] == {"no_sentence": 2}
    assert "2 of 5 sentences got quotation marks of their own." in manifest["notes"]
    folder, manifest = built("kept", [document], quotes="keep")
    assert table(folder, "documents")[0]["sentences"][3:] == ["“Go.", "Now,” he said."]
    assert not any("quotation marks" in note for note in manifest["notes"])


def test_a_split_keeps_its_documents_whole(tmp_path, make_document, build):
    lengths = {"train": (3, 9, 25), "validation": (41,), "test": (1, 2, 3, 9, 25, 256)}
    documents, lines = [], []
    for split, numbers in lengths.items():
        documents += [make_document(f"{split}{n}", n) for n in numbers]
        lines += [f"{split}\t{split}{n}\n" for n in numbers]
    table_of_splits = tmp_path / "splits.tsv"
    table_of_splits.write_text("".join(lines), encoding="utf-8")
    settings = {"table": str(table_of_splits), "max_tokens": 100, "min_sentences": 2}
    folder, manifest = build("permuted", documents, whole=["test"], **settings)
    rows = rows_of(folder, "documents")
    of_test = {row["id"]: len(row["sentences"]) for row in rows["test"]}
    assert of_test == {f"test{n}": n for n in (2, 3, 9, 25)}
    assert manifest["rejects"]["too_many_sentences"] == 1
    pairs = Counter(row["document"] for row in rows_of(folder, "pairwise")["test"])
    assert pairs == {"test2": 1, "test3": 5, "test9": 20, "test25": 20}
    # The other splits are as without the setting.
    cut = rows_of(build("permuted", documents, "cut", **settings)[0], "documents")
    assert [rows[s] for s in ("train", "validation")] == [cut[s] for s in ("train", "validation")]
    assert {row["id"].partition("#")[0] for row in cut["validation"]} == {"validation41"}


def test_lines_as_they_are(built):
    text = "The Pier\n\nIt is old. He replied: “Go. Now.”"
    document = split_document(Document("d", text, licence="MIT"))
    for name, settings in {"keep": {}, "balance": {"quotes": "balance"}}.items():
        folder, manifest = built(name, [document], quotes=name, lines="all", min_sentences=3)
        [row] = table(folder, "documents")
        assert row["sentences"][:2] == ["The Pier", "It is old."], settings
        assert (row["sentences"][-1] == "Now.”") is (name == "keep")
        assert "no_sentence" not in manifest["rejects"]


def test_a_block_with_the_id_of_another_document_is_refused(built, make_document):
    long, short = make_document("a", 25), make_document("a#0", 8)
    for documents in ([long, short], [short, long]):
        with pytest.raises(InputError, match="two positives have the id 'a#0'"):
            built(documents=documents)


def test_speech_takes_only_places_of_speech():
    """Three sentences of speech and three others have 3! * 3! orders."""
    document = ["“A.”", "B.", "“C.”", "D.", "“E.”", "F."]
    documents = [document, [*document[:4], "“A.”", "F."]]
    keys = document_keys(1, "permuted", ["a", "b"])
    batch = order_rows(keys, ["a", "b"], documents, lambda total: (1, total - 1), quotes_at_ends)
    assert batch is not None
    for sentences, rows, total in zip(
        documents, batch["orders"].to_pylist(), (36, 18), strict=True
    ):
        texts = {tuple(sentences[place] for place in order) for order in rows}
        assert len(texts) == len(rows) == total - 1 and tuple(sentences) not in texts
        assert {tuple("“" in sentence for sentence in text) for text in texts} == {
            (True, False, True, False, True, False)
        }


def test_lists_of_files_say_the_splits(tmp_path, build, make_document):
    """As the papers on coherence divide the Wall Street Journal."""
    lists = tmp_path / "lists"
    lists.mkdir()
    names = [f"wsj_{number:04}" for number in range(6)]
    (lists / "list.train").write_text(f"./wsj/{names[0]}.txt\nraw/{names[1]}\n{names[2]}\n")
    (lists / "list.dev.docs").write_text(f"{names[3]}.pos\n")
    (lists / "list.test").write_text(f"{names[4]}\n\n")
    (lists / "README").write_text("Not a list.\n")
    documents = [make_document(f"{name[4:6]}/{name}", sentences=6) for name in names]
    folder, manifest = build("permuted", documents, table=str(lists))
    rows = rows_of(folder, "documents")
    found = {split: {row["id"][3:] for row in part} for split, part in rows.items()}
    assert found == {
        "train": set(names[:3]),
        "validation": {names[3]},
        "test": {names[4]},
    }
    assert manifest["rejects"]["document_in_no_split"] == 1
    assert manifest["details"]["split"]["reason"] == "as lists says"
    (lists / "list.test").write_text(f"{names[0]}\n")
    with pytest.raises(ConfigError, match=f"{names[0]}' is in two splits"):
        build("permuted", documents, table=str(lists))
    with pytest.raises(ConfigError, match="no list of files"):
        (tmp_path / "none").mkdir()
        build("permuted", documents, table=str(tmp_path / "none"))
