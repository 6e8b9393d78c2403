"""Intrusion: what is replaced and by what, balance, both forms, that order changes nothing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from corpora.document import Document, Spans
from corpora.errors import InputError
from corpora.sentences import split_document
from corpora.store.atomic import staged
from corpora.tasks import intruders, intrusion
from corpora.tasks.builder import Target
from corpora.tasks.intrusion import Intrusion
from corpora.tasks.names import name_counts
from corpora.tasks.similar import Categories, Neighbours, Profiles

THINGS = [
    ("lighthouse", "lamp", "storm", "keeper", "rocks", "harbour", "fog"),
    ("oven", "bread", "flour", "baker", "crust", "dough", "yeast"),
    ("clock", "tower", "bell", "spring", "wheel", "hands", "hour"),
]


EASY = {"max_similarity": 0.9, "validation": 0, "test": 0}


def text_about(number: int) -> Document:
    """Six sentences about one of three topics, all different."""
    random = np.random.default_rng(number)
    words = THINGS[number % 3]
    sentences = []
    for i in range(6):
        one, two, three = random.choice(words, 3, replace=False)
        sentences.append(f"The {one} and the {two} near the {three} were seen on day {i} by Ann.")
    return split_document(Document(f"d{number}", " ".join(sentences), licence="CC-BY-4.0"))


@pytest.fixture
def documents():
    return [text_about(i) for i in range(120)]


@pytest.fixture
def built(tmp_path, documents, stage):
    def build(name="x", documents=documents, seed=1, **settings):
        folder = tmp_path / name / "data"
        with staged(folder) as partial:
            builder = Intrusion.of({"max_similarity": 0.9, **settings})
            return folder, builder.build(documents, Target(partial, stage, seed))

    return build


def rows_of(folder: Path, config: str = "pairwise") -> dict[str, list[dict]]:
    files = sorted(folder.glob(f"{config}/*.parquet"))
    return {file.name.split("-")[0]: pq.read_table(file).to_pylist() for file in files}


def test_one_sentence_inside_is_from_another_similar_text(built, documents):
    text = {document.id: document.text for document in documents}
    for split, rows in rows_of(built(similar=20, max_text_similarity=1)[0]).items():
        for row in rows:
            pairs = zip(row["pos"], row["neg"], strict=True)
            differing = [i for i, (a, b) in enumerate(pairs) if a != b]
            assert differing == [row["position"]]
            assert 0 < row["position"] < len(row["pos"]) - 1
            host, donor = row["doc"].split("#")[0], row["donor"].split("#")[0]
            assert " ".join(row["pos"]) == text[host] and host != donor
            intruder = row["neg"][row["position"]]
            assert intruder in text[donor][1:-1]
            # Of its topic are 20 other texts, if the split is not too small.
            assert split != "train" or int(host[1:]) % 3 == int(donor[1:]) % 3


def test_no_sentence_intrudes_on_a_text_that_has_it(built, documents):
    """Scene breaks are words to a splitter of words, but not to a measure of similarity."""
    broken = []
    for document in documents:
        texts = document.sentence_texts()
        texts[3] = "* * * *"
        spans, at = Spans(), 0
        for text in texts:
            spans.add(at, at + len(text))
            at += len(text) + 1
        broken.append(replace(document, text=" ".join(texts), paragraphs=None, sentences=spans))
    folder, _ = built(documents=broken, per_text=5)
    rows = [row for split in rows_of(folder).values() for row in split]
    assert rows and all(row["neg"][row["position"]] not in row["pos"] for row in rows)


def test_an_intruder_comes_once_and_from_the_same_split(built):
    splits = rows_of(built()[0])
    found = [{d for r in rows for d in (r["doc"], r["donor"])} for rows in splits.values()]
    assert len(found) == 3 and sum(map(len, found)) == len(set.union(*found))
    used = [(r["donor"], r["neg"][r["position"]]) for rows in splits.values() for r in rows]
    assert len(used) == len(set(used))


def test_a_text_gives_several_pairs_at_places_of_its_own(built):
    one = [row for rows in rows_of(built()[0]).values() for row in rows]
    more = rows_of(built("more", per_text=3)[0])
    rows = [row for found in more.values() for row in found]
    assert len(rows) > len(one)
    places = [(row["doc"], row["position"]) for row in rows]
    assert len(set(places)) == len(places)
    assert max(Counter(doc for doc, _ in places).values()) == 3
    intruders = [(row["donor"], row["neg"][row["position"]]) for row in rows]
    assert len(set(intruders)) == len(intruders)
    splits = [{row["doc"] for row in found} for found in more.values()]
    assert sum(map(len, splits)) == len(set.union(*splits))


def test_a_place_whose_best_intruder_is_taken_gets_the_next(built):
    """There are guests enough for all four places of nearly every text."""
    rows = rows_of(built(per_text=4)[0])
    pairs = Counter(row["doc"] for found in rows.values() for row in found)
    assert sum(count == 4 for count in pairs.values()) > 0.85 * len(pairs)


def test_intruders_are_as_often_closer_than_what_they_replace_as_not(built):
    """Each text names its own person again and again: foreign sentences are mostly less close."""
    texts = []
    for i in range(240):
        sentences = text_about(i).sentence_texts()
        name = ("Ann", "Bertram", "Celia", "Dorothy", "Edgar", "Frances")[i // 3 % 6]
        words = " ".join(sentences).replace("Ann", f"{name} and {name}")
        texts.append(split_document(Document(f"d{i}", words, licence="CC-BY-4.0")))
    closer = {}
    for choose in ("matched", "random"):
        bounds = {"max_text_similarity": 1, "max_similarity": 0.99, "names": "any"}
        rows = rows_of(built(choose, texts, choose=choose, **bounds)[0])["train"]
        assert len(rows) > 180
        closer[choose] = np.mean([r["similarity"] > r["replaced_similarity"] for r in rows])
    assert abs(closer["matched"] - 0.5) < 0.05 and closer["random"] < closer["matched"] - 0.1


def test_quotes_stay_closed_and_lengths_alike(built, documents):
    """Some sentences begin a quotation, others end one."""
    texts = []
    for i, document in enumerate(documents):
        sentences = document.sentence_texts()
        sentences[2], sentences[4] = f"“{sentences[2]}", f"{sentences[4]}”"
        sentences[3] = sentences[3].replace("near", "near the old and nearly forgotten part of")
        spans, at = Spans(), 0
        for sentence in sentences:
            spans.add(at, at + len(sentence))
            at += len(sentence) + 1
        whole = Document(f"d{i}", " ".join(sentences), licence="MIT", sentences=spans)
        texts.append(whole)
    rows = [
        row for some in rows_of(built(documents=texts, max_ratio=1.2)[0]).values() for row in some
    ]
    assert {2, 4} <= {row["position"] for row in rows}
    for row in rows:
        one, other = row["pos"][row["position"]], row["neg"][row["position"]]
        assert (one[0] == "“", one[-1] == "”") == (other[0] == "“", other[-1] == "”")
        assert 1 / 1.21 < len(one.split()) / len(other.split()) < 1.21


def novel(name: str, chapters: int) -> list[Document]:
    """Chapters of one book, each of 40 sentences in paragraphs of two."""
    found = []
    for chapter in range(chapters):
        some = [text_about(1000 * chapter + 31 * i + len(name)).sentence_texts() for i in range(8)]
        lines = [line.replace("Ann", name) for text in some for line in text[:5]]
        text = "\n\n".join(" ".join(lines[i : i + 2]) for i in range(0, len(lines), 2))
        document = Document(f"{name}/{chapter}", text, group=name, licence="CC0-1.0")
        found.append(split_document(document))
    return found


def test_two_books_give_a_pair_for_nearly_each_text_with_no_setting(built):
    books = novel("Anselm", 20) + novel("Barbara", 20)
    folder, _ = built(documents=books, max_similarity=0.6, names="any")  # all name the hero
    pairs = {split: len(rows) for split, rows in rows_of(folder).items()}
    whole = sum(pairs.values())
    assert whole >= 0.9 * 40 * 5  # chapters of five texts
    assert abs(pairs["train"] / whole - 0.8) < 0.05 and abs(pairs["test"] / whole - 0.1) < 0.05
    donors = [(r["doc"][0], r["donor"][0]) for rows in rows_of(folder).values() for r in rows]
    assert any(host != donor for host, donor in donors)
    own, _ = built("own", books, same_book=True)
    donors = [(r["doc"][0], r["donor"][0]) for rows in rows_of(own).values() for r in rows]
    assert len(donors) > 0.8 * whole and all(host == donor for host, donor in donors)


@pytest.mark.usefixtures("small_audits")
def test_an_intruder_names_nobody_of_another_book(built):
    """Of four books, two share a place; without the check, others' people come into a book."""
    people = {"Anselm": "Ostrava", "Barbara": "Ostrava", "Clovis": "Palermo", "Doreen": "Trieste"}
    books = []
    for person, place in people.items():
        for document in novel(person, 2):
            lines = document.text.replace(f" by {person}.", f" by {person} of {place}.")
            books.append(split_document(replace(document, text=lines, sentences=None)))
    known = {book: {book, place} for book, place in people.items()}
    for names in ("known", "any"):
        rows = rows_of(built(names, books, names=names, choose="random", **EASY)[0])
        foreign = 0
        for row in (row for rows_of_split in rows.values() for row in rows_of_split):
            host = row["doc"].split("/")[0]
            said = set(re.findall(r"\w+", row["neg"][row["position"]]))
            foreign += bool(said & {*people, *people.values()} - known[host])
        assert (foreign == 0) == (names == "known")


def test_a_word_is_a_name_by_its_capitals():
    sentences = [
        *("Elizabeth smiled at Jane.", "The House was cold.", "A house stood there."),
        *("“Well,” said Jane, “Undoubtedly it is.”", "She met Elizabeth in Kent — Nobody saw."),
    ]
    counts = name_counts(sentences).toarray()
    assert counts.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0], [1, 0, 1]]


def test_a_pool_is_of_one_book_and_no_larger_than_memory_allows(monkeypatch):
    monkeypatch.setattr(intrusion, "POOL", 4)
    assert list(intrusion.pool_bounds(np.array([0] * 9 + [1] * 3))) == [
        (0, 3),
        (3, 3),
        (6, 3),
        (9, 3),
    ]
    assert list(intrusion.pool_bounds(np.array([], np.int64))) == []


def test_both_forms_hold_the_same_texts(built):
    folder, _ = built()
    pairwise, detection = rows_of(folder), rows_of(folder, "detection")
    for split, rows in detection.items():
        assert len(rows) == 2 * len(pairwise[split])
        for pair, one, two in zip(pairwise[split], rows[::2], rows[1::2], strict=True):
            assert (one["label"], one["position"], one["sentences"]) == (0, -1, pair["pos"])
            assert (two["label"], two["position"]) == (1, pair["position"])
            assert two["sentences"] == pair["neg"]


def test_no_intruder_is_nearly_a_sentence_of_its_text(built):
    texts = {d.id: d for d in map(text_about, range(120))}
    loose, strict = (rows_of(built(str(most), max_similarity=most)[0]) for most in (0.95, 0.4))
    alike = []
    for found in (loose, strict):
        rows = [row for some in found.values() for row in some]
        assert rows and all(row["doc"].split("#")[0] in texts for row in rows)
        shared = [
            max(len(words_of(row["neg"][row["position"]]) & words_of(text)) for text in row["pos"])
            for row in rows
        ]
        alike.append(np.mean(shared))
    assert alike[1] < alike[0]


def words_of(text: str) -> set[str]:
    return set(text.lower().split())


def test_a_copy_of_a_text_is_no_donor(built, documents):
    copy = Document("copy", documents[0].text + " An end.", licence="MIT")
    pair = [documents[0], split_document(copy)]
    with pytest.raises(InputError, match="not one row"):
        built(documents=pair, validation=0, test=0)


def test_neither_order_nor_batches_change_a_byte(built, documents, folder_bytes, monkeypatch):
    one = folder_bytes(built("one")[0])
    monkeypatch.setattr(intruders, "TEXTS_A_BATCH", 5)
    assert one == folder_bytes(built("two", documents[::-1])[0])
    assert one != folder_bytes(built("three", seed=2)[0])


def test_long_units_are_cut_and_short_ones_left_out(built, make_document):
    documents = [make_document(f"d{i}", 9, 2) for i in range(12)]
    settings = {"validation": 0, "test": 0, "max_text_similarity": 1, "max_similarity": 0.99}
    folder, _ = built(documents=documents, within="paragraph", max_sentences=5, **settings)
    assert {len(row["pos"]) for row in rows_of(folder)["train"]} <= {4, 5}
    lead, _ = built("lead", documents, take="lead", **settings)
    assert {len(row["pos"]) for row in rows_of(lead)["train"]} == {8}


# --- similar texts -------------------------------------------------------------------------------


def test_the_most_similar_text_is_found_and_unlike_ones_are_not(tmp_path):
    texts = ["the cat sat on the mat", "a cat sat on one mat", "old dogs bark", "dogs bark", ""]
    with Profiles(tmp_path) as profiles:
        for number, text in enumerate(texts):
            profiles.add(str(number), text)
        matrix = profiles.matrix([str(number) for number in range(5)])
    found = list(Neighbours(matrix).nearest(np.arange(5), 2))
    assert [others.tolist() for others, _ in found] == [[1], [0], [3], [2], []]
    assert list(tmp_path.iterdir()) == []


def test_the_share_of_categories_counts_all_of_both():
    categories = Categories()
    for name, found in {"a": ["x", "y"], "b": ["Y", "z"], "c": ["x", "y", "w"]}.items():
        categories.add(name, found)
    index = Neighbours(categories.matrix(["a", "b", "c", "d"]), "share")
    rows = list(index.nearest(np.arange(4), 3))
    assert [others.tolist() for others, _ in rows] == [[2, 1], [0, 2], [0, 1], []]
    assert np.allclose(rows[0][1], [2 / 3, 1 / 3])


def test_what_very_many_have_is_not_looked_up():
    categories = Categories()
    for number in range(9):
        categories.add(str(number), ["all", f"some{number // 3}"])
    matrix = categories.matrix([str(number) for number in range(9)])
    rows = list(Neighbours(matrix, "share", most=5).nearest(np.arange(9), 9))
    assert [sorted(others.tolist()) for others, _ in rows][:2] == [[1, 2], [0, 2]]


# --- the shared INSteD pairs ---------------------------------------------------------------------


@pytest.mark.usefixtures("small_audits")
@pytest.mark.slow
def test_ours_are_no_easier_than_the_shared_pairs(discorpora_data, built):
    from tests.bench import bench_intrusion as bench

    theirs = bench.released(discorpora_data / "coherence" / "instead_wikipedia.jsonl")
    texts = [bench.as_document(pair["id"], pair["pos"]) for pair in theirs]
    same, _ = bench.ours(texts)
    noise = 1.65 * np.sqrt(0.25 / len(same))  # one-sided, 95 %
    for score in (bench.adjacent_overlap, bench.all_overlap, bench.loneliest):
        assert bench.untrained(same, score) <= bench.untrained(theirs, score) + noise
    assert bench.learned_overlap(same) <= bench.learned_overlap(theirs) + noise
    assert len(same) > len(theirs) / 2


def test_the_licence_of_the_donor_counts_too(built, documents):
    for number, document in enumerate(documents):
        document.licence = ("CC0-1.0", "MIT")[number // 3 % 2]
    of = {document.id: document.licence for document in documents}
    folder, manifest = built()
    rows = [row for split in rows_of(folder).values() for row in split]
    pairs = [{of[row[key].split("#")[0]] for key in ("doc", "donor")} for row in rows]
    assert any(len(pair) == 2 for pair in pairs)
    assert manifest["licences"] == Counter(licence for pair in pairs for licence in pair)


def test_a_text_intrudes_once_wherever_it_stands(built, documents):
    """A sentence that many documents have, in one letter case or another, and fits everywhere."""
    said = "The lighthouse and the bread near the clock were seen on day nine by Ann."
    texts = []
    for i, document in enumerate(documents):
        sentences = document.sentence_texts()
        sentences.insert(1 + i % 5, said if i % 2 else said.upper())
        texts.append(split_document(Document(f"d{i}", " ".join(sentences), licence="MIT")))
    for choose in ("matched", "random"):
        found = built(choose, texts, choose=choose, max_ratio=9.0)[0]
        rows = [row for split in rows_of(found).values() for row in split]
        intruders = [row["neg"][row["position"]].casefold() for row in rows]
        assert len(intruders) > 50 and len(set(intruders)) == len(intruders)


def test_a_sentence_of_a_quotation_within_one_has_its_own_form():
    nested, single = "“‘I saw the old pier burn.’”", "“I saw the old pier burn.”"
    assert intruders.punctuation_form(nested) != intruders.punctuation_form(single)
    assert intruders.punctuation_form(nested) == intruders.punctuation_form(
        "“‘We ran to the shore at once.’”"
    )


def test_no_mark_of_another_typesetter_tells_the_intruder(built, documents):
    """Of two books, one has straight apostrophes and one typographic ones."""
    texts = []
    for i, document in enumerate(documents):
        told = document.text.replace("Ann.", f"Ann{chr(39) if i % 2 else '’'}s son.")
        texts.append(split_document(Document(document.id, told, licence="MIT")))
    for choose in ("matched", "random"):
        found = built(choose, texts, choose=choose)[0]
        rows = [row for split in rows_of(found).values() for row in split]
        assert len(rows) > 40
        assert not [row for row in rows if {"'", "’"} <= set(" ".join(row["neg"]))]
