"""DisSent datasets from tables of pairs: filters, duplicates, sets of markers, splits."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import DiscorporaError, InputError
from corpora.schemas import MARKERS_5, MARKERS_8, MARKERS_ALL, PAIRS
from corpora.store.atomic import staged
from corpora.store.rows import write_parquet
from corpora.tasks.builder import Target
from corpora.tasks.dissent import Dissent

WORDS = (
    *("The", "miller", "carried", "nine", "heavy", "stones"),
    *("up", "the", "hill", "before", "any", "other"),
)


def pair(number: int, marker: str = "but", words: tuple[int, int] = (8, 9), **fields) -> dict:
    """A pair that differs for each number, with so many words a side."""
    s1 = " ".join([f"Once{number}", *WORDS[: words[0] - 1]]) + "."
    s2 = " ".join([f"Twice{number}", *WORDS[: words[1] - 1]]) + "."
    pair = {
        **{"doc": f"d{number % 40}", "group": f"g{number % 40}", "source": "s", "licence": "MIT"},
        **{"language": "en", "sentence": number, "marker": marker, "marker_spans": [[0, 3]]},
        **{"s1_spans": [[4, 9]], "s2_spans": [[9, 12]], "s1": s1, "s2": s2},
        **{"position": "same_sentence", "order": "s1_first", "has_clauses": True, "pattern": "x"},
        **{"s2_added": "", "confidence": 0.75},
    }
    return pair | fields


@pytest.fixture
def pairs() -> list[dict]:
    """800 pairs, some markers more frequent than others, in 40 documents."""
    found = [pair(i, MARKERS_ALL[min(i % 25, i % 15)]) for i in range(800)]
    return sorted(found, key=lambda row: row["doc"])


@pytest.fixture
def built(tmp_path, stage):
    def build(rows, name="x", batch=100, files=2, **settings):
        folder = tmp_path / name
        documents = list(dict.fromkeys((row["doc"], row["source"]) for row in rows))
        file = {document: i * files // len(documents) for i, document in enumerate(documents)}
        paths = []
        for number in range(files):
            part = [row for row in rows if file[row["doc"], row["source"]] == number]
            batches = pa.Table.from_pylist(part, PAIRS).to_batches(batch)
            paths.append(folder / f"pairs-{number}.parquet")
            write_parquet(paths[-1], batches, PAIRS)
        target = folder / "data"
        with staged(target) as partial:
            return target, Dissent.of(settings).build(paths, Target(partial, stage, 1))

    return build


def rows_of(folder: Path, config: str, split: str = "*") -> list[dict]:
    files = sorted(folder.glob(f"{config}/{split}-*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_the_sets_of_markers_are_the_papers(built, pairs, load):
    folder, _ = built(pairs)
    for config, markers in (("all", MARKERS_ALL), ("books8", MARKERS_8), ("books5", MARKERS_5)):
        data = load(folder, config)
        assert data["train"].features["label"].names == list(markers)
        expected = {p["s1"]: p["marker"] for p in pairs if p["marker"] in markers}
        found = {r["s1"]: markers[r["label"]] for r in rows_of(folder, config)}
        assert found == expected
    assert load(folder)["train"].num_rows == load(folder, "all")["train"].num_rows


def test_a_row_says_where_its_marker_is(built, pairs):
    placed = [row | {"marker_spans": [[7 * i, 7 * i + 3]]} for i, row in enumerate(pairs)]
    expected = {row["s1"]: 7 * i for i, row in enumerate(pairs)}
    folder, _ = built(placed)
    assert {row["s1"]: row["marker_start"] for row in rows_of(folder, "all")} == expected


def test_smaller_sets_are_subsets_in_the_same_splits(built, pairs):
    folder, _ = built(pairs)
    for split in ("train", "validation", "test"):
        texts = [
            {row["s1"] for row in rows_of(folder, config, split)}
            for config in ("books5", "books8", "all")
        ]
        assert texts[0] <= texts[1] <= texts[2]
        assert {row["s1"] for row in rows_of(folder, "balanced", split)} <= texts[2]


def test_no_document_is_in_two_splits_and_shares_are_near_the_papers(built, pairs):
    folder, manifest = built(pairs)
    splits = {s: rows_of(folder, "all", s) for s in ("train", "validation", "test")}
    documents = [{row["doc"] for row in rows} for rows in splits.values()]
    assert sum(map(len, documents)) == len(set.union(*documents)) == 40
    assert [len(rows) for rows in splits.values()] == [720, 40, 40]
    assert manifest["details"]["split"]["by"] == "group"


def test_every_marker_is_as_frequent_as_the_rarest_in_balanced(built, pairs):
    folder, manifest = built(pairs)
    rarest = min(Counter(p["marker"] for p in pairs).values())
    counts = Counter(row["label"] for row in rows_of(folder, "balanced"))
    assert set(counts.values()) == {rarest} and len(counts) == 15
    assert manifest["details"]["balanced_cap"] == rarest
    counts = Counter(
        row["label"] for row in rows_of(built(pairs, "cap", balanced_cap=5)[0], "balanced")
    )
    assert set(counts.values()) == {5}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"words": (4, 9)}, "too_short"),
        ({"words": (9, 4)}, "too_short"),
        ({"has_clauses": False}, "no_clauses"),
        ({"marker": "whereas"}, "marker_not_in_set"),
        ({"s1": "word " * 51}, "too_long"),
        ({"words": (5, 5), "s2": "word " * 26}, "unlike_lengths"),
    ],
)
def test_pairs_that_do_not_pass_are_counted_by_reason(built, pairs, changed, reason):
    bad = pair(10_000, **changed)
    folder, manifest = built([*pairs, bad])
    assert manifest["rejects"] == {reason: 1}
    assert bad["s1"] not in {row["s1"] for row in rows_of(folder, "all")}


def test_the_bounds_themselves_pass(built, pairs):
    edge = pair(10_000, words=(5, 9), s2="word " * 25)
    folder, manifest = built([*pairs, edge, pair(10_001, s1="a " * 50, s2="b " * 50)])
    assert manifest["rejects"] == {}
    assert len(rows_of(folder, "all")) == 802


def test_pairs_without_clauses_can_be_asked_for(built, pairs):
    extra = pair(10_000, has_clauses=False)
    _, manifest = built([*pairs, extra], require_clauses=False)
    assert manifest["rejects"] == {}


def test_exact_duplicates_are_left_out_whatever_the_order(built, pairs):
    again = [{**p, "doc": "d99", "group": "g99"} for p in pairs[:50]]
    other_marker = {**pairs[0], "doc": "d99", "group": "g99", "marker": "although"}
    one, manifest = built([*pairs, *again, other_marker], "one")
    two, _ = built([*again, other_marker, *pairs], "two")
    assert manifest["rejects"] == {"exact_duplicate": 50}
    found = [{(r["doc"], r["s1"], r["label"]) for r in rows_of(f, "all")} for f in (one, two)]
    assert found[0] == found[1] and len(found[0]) == 801


def test_near_duplicates_are_left_out_but_for_the_first(built):
    pytest.importorskip("datasketch", reason="needs the extra `dedup`")
    few = [pair(i, s1=f"{w} a b c d", s2=f"{w}s e f g h") for i, w in enumerate(WORDS[:7])]
    few[0] |= {"s1": "one two three four five", "s2": "six seven eight nine ten"}
    alike = {**few[0], "s1": "one two three four five five", "doc": "d99", "group": "g99"}
    _, manifest = built([few[0], alike], near_duplicates=0.9)
    assert manifest["rejects"] == {"near_duplicate": 1}
    _, manifest = built(few, "unlike", near_duplicates=0.95)
    assert manifest["rejects"] == {}


def test_the_library_for_near_duplicates_is_named_where_it_is_missing(built, pairs, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(DiscorporaError, match=r"near_duplicates = 0\.9") as caught:
        built(pairs, near_duplicates=0.9)
    assert "pip install 'discorpora[dedup]'" in caught.value.hint


@pytest.mark.parametrize("batch", [7, 1000])
def test_batches_and_files_change_no_byte(built, pairs, batch, folder_bytes):
    one, two = built(pairs, "one")[0], built(pairs, "two", batch=batch, files=5)[0]
    assert folder_bytes(one) == folder_bytes(two)


def test_a_document_cut_by_a_batch_goes_on_where_it_stopped(
    built, pairs, folder_bytes, monkeypatch
):
    whole = built(pairs, "whole")[0]
    monkeypatch.setattr("corpora.tasks.dissent.ROWS_PER_BATCH", 7)
    assert folder_bytes(whole) == folder_bytes(built(pairs, "parts")[0])


def test_a_document_in_two_files_is_refused(tmp_path, stage):
    paths = [tmp_path / f"pairs-{number}.parquet" for number in range(2)]
    for path in paths:
        write_parquet(path, [pa.RecordBatch.from_pylist([pair(1)], PAIRS)], PAIRS)
    with pytest.raises(InputError, match="two documents have the id 'd1'"):
        Dissent().build(paths, Target(tmp_path / "data.partial", stage, 1))


def test_absent_markers_are_said_and_keep_their_labels(built, pairs, load):
    few = [p for p in pairs if p["marker"] in MARKERS_8]
    folder, manifest = built(few)
    assert any("although" in note for note in manifest["notes"])
    assert load(folder)["train"].features["label"].names == list(MARKERS_ALL)


def test_a_corpus_without_pairs_is_an_error(built):
    with pytest.raises(InputError, match="not one row"):
        built([pair(1, words=(2, 2))])


def test_a_file_of_another_form_is_named(tmp_path, stage):
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"doc": ["d"], "text": ["x"]}), other)
    target = Target(tmp_path / "data.partial", stage, 1)
    with pytest.raises(InputError, match=r"other\.parquet.*no column"):
        Dissent().build([other], target)
    other.write_text("no parquet at all")
    with pytest.raises(InputError, match=r"other\.parquet"):
        Dissent().build([other], target)


def test_two_sources_with_one_id_are_refused(built, pairs):
    again = [{**row, "source": "another"} for row in pairs]
    with pytest.raises(InputError, match="two documents have the id"):
        built([*pairs, *again])
    with pytest.raises(InputError, match="another, s: two documents have the id 'd0'"):
        built([pairs[0], again[0]], files=1)


def test_so_many_markers_as_one_names(built):
    markers = tuple(f"m{i}" for i in range(300))
    folder, manifest = built([pair(i, marker) for i, marker in enumerate(markers)], markers=markers)
    assert sorted(row["label"] for row in rows_of(folder, "all")) == list(range(300))
    assert manifest["details"]["balanced_cap"] == 1


def test_the_order_of_files_and_documents_changes_no_byte(built, pairs, folder_bytes):
    documents = {row["doc"]: [] for row in pairs}
    for row in pairs:
        documents[row["doc"]].append(row)
    turned = [row for name in reversed(documents) for row in documents[name]]
    assert folder_bytes(built(pairs, "one")[0]) == folder_bytes(built(turned, "two", files=5)[0])


def alike(number: int, shared: int, doc: str) -> tuple[dict, dict]:
    """Two pairs of 20 words, `shared` of them the same (the marker is one word more)."""
    words = [f"w{number}x{i}" for i in range(20)]
    other = [*words[:shared], *(f"v{number}x{i}" for i in range(20 - shared))]
    return tuple(
        pair(number, s1=" ".join(w[:10]), s2=" ".join(w[10:]), doc=f"{doc}{name}", group="g")
        for name, w in (("a", words), ("b", other))
    )


@pytest.mark.parametrize(
    ("threshold", "shared", "share"),
    # Jaccard similarities, with the marker: .31, .68; .91, .68; .56.
    [(0.5, 9, 0.0), (0.5, 16, 1.0), (0.8, 19, 1.0), (0.8, 16, 0.0), (0.95, 14, 0.0)],
)
def test_near_duplicates_are_as_alike_as_the_setting_says(built, threshold, shared, share):
    pytest.importorskip("datasketch", reason="needs the extra `dedup`")
    rows = [row for n in range(60) for row in alike(n, shared, f"d{n}")]
    _, manifest = built(rows, near_duplicates=threshold)
    assert abs(manifest["rejects"].get("near_duplicate", 0) / 60 - share) <= 0.05


def test_which_near_duplicate_stays_hangs_on_the_pairs_alone(built, folder_bytes):
    pytest.importorskip("datasketch", reason="needs the extra `dedup`")
    rows = [row for n in range(30) for row in alike(n, 19, f"d{n}")]
    one, two = (built(r, n, near_duplicates=0.7)[0] for r, n in ((rows, "1"), (rows[::-1], "2")))
    assert folder_bytes(one) == folder_bytes(two)
