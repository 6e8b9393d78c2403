"""What holds of every builder: what changes no byte, double ids, settings that cannot be."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.splits import SPLITS
from corpora.store.atomic import staged
from corpora.store.documents import write_documents
from corpora.store.engine import Engine
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target
from tests.corpora.test_tasks_load import SETTINGS, SOURCES, inputs

NAMES = ["dissent", *SOURCES]


def files_of(name: str, folder: Path) -> list[Path]:
    """Shards of documents, or for `dissent` of pairs."""
    if name == "dissent":
        return inputs(name, folder)
    write_documents(inputs(name, folder), folder, docs_per_shard=5)
    return sorted(folder.glob("documents-*.parquet"))


@pytest.mark.parametrize("name", ["my [v2]* books", "label=7", r"source=my\books/doc=3"])
def test_the_name_of_the_output_folder_changes_no_byte(name, tmp_path, stage, folder_bytes):
    made = []
    for place in (tmp_path / "plain", tmp_path / name):
        with staged(place / "sp") as partial:
            BUILDERS.find("sp").of({}).build(inputs("sp", tmp_path), Target(partial, stage, 1))
        made.append(folder_bytes(place / "sp"))
    assert made[0] == made[1]


@pytest.mark.parametrize("name", NAMES)
def test_threads_memory_workers_and_order_change_no_byte(
    name, tmp_path, stage, folder_bytes, small_audits
):
    builder = BUILDERS.find(name).of(SETTINGS.get(name, {}))
    files = files_of(name, tmp_path)
    made = []
    for way, (threads, memory, workers) in enumerate(
        [(1, "512MB", 1), (2, "64MB", 2), (4, "512MB", 3)]
    ):
        folder = tmp_path / str(way) / "data"
        with staged(folder) as partial:
            target = Target(partial, stage, 1, threads=threads, memory=memory)
            for rank in reversed(range(1, workers)):  # the build makes those of rank 0 itself
                builder.collect_part(files, target, rank, workers)
            builder.build(files, target)
        made.append(folder_bytes(folder))
    assert made[0] == made[1] == made[2]
    documents = tmp_path / "documents" / "data"
    if name != "dissent":
        with staged(documents) as partial:
            builder.build([*inputs(name, tmp_path)][::-1], Target(partial, stage, 1))
        assert folder_bytes(documents) == made[0]


def test_shards_that_are_there_are_kept_and_removed_at_the_end(tmp_path, stage, monkeypatch):
    builder = BUILDERS.find("bso")()
    files = files_of("bso", tmp_path)
    with staged(tmp_path / "data") as partial:
        target = Target(partial, stage, 1)
        builder.collect_part(files, target)
        monkeypatch.setattr("corpora.tasks.builder.Builder.candidate_batches", None)
        builder.build(files, target)
    assert {path.name for path in (tmp_path / "data").iterdir()} == {
        *("README.md", "audit.json", "eval.yaml", "manifest.json", "default"),
    }


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dissent"])
def test_two_documents_with_one_id_are_refused(name, tmp_path, build):
    documents = list(inputs(name, tmp_path))
    documents.append(replace(documents[0], source="another"))
    with pytest.raises(InputError, match="two documents have the id") as error:
        build(name, documents, **SETTINGS.get(name, {}))
    assert "another" in str(error.value.where)


REFUSED = [
    ("sp", {"take": "led"}, "take = 'led'"),
    ("sp", {"take": "lead", "lead_sentences": 3}, "lead_sentences = 3"),
    ("sp", {"within": "page"}, "within = 'page'"),
    ("sp", {"min_words": 9, "max_words": 3}, "min_words = 9, max_words = 3"),
    ("sp", {"train": 0, "validation": 0, "test": 0}, "train, validation and test = 0, 0, 0"),
    ("bso", {"lead_sentences": -1}, "lead_sentences = -1"),
    ("bso", {"validation": -2}, "validation = -2"),
    ("dc", {"similar": 0}, "similar = 0"),
    ("dc", {"chat_plain": 2}, "chat_plain = 2"),
    ("dc", {"chat_test": -1}, "chat_test = -1"),
    ("dc", {"max_text_similarity": 0.0}, "max_text_similarity = 0.0"),
    ("dc", {"lead_sentences": 5}, "lead_sentences = 5"),
    ("ssp", {"min_words": 0}, "min_words = 0"),
    ("ssp", {"plain": 2}, "plain = 2"),
    ("intrusion", {"take": "all"}, "take = 'all'"),
    ("intrusion", {"min_sentences": 2}, "min_sentences = 2"),
    ("intrusion", {"max_similarity": 1.0}, "max_similarity = 1.0"),
    ("intrusion", {"similar": 0}, "similar = 0"),
    ("intrusion", {"max_ratio": 0.5}, "max_ratio = 0.5"),
    ("intrusion", {"per_text": 0}, "per_text = 0"),
    ("intrusion", {"choose": "best"}, "choose = 'best'"),
    ("permuted", {"block_size": 30}, "min_sentences = 4, block_size = 30"),
    ("permuted", {"block_from": 400}, "block_from"),
    ("permuted", {"min_sentences": 1}, "min_sentences = 1"),
    *(("permuted", {key: 0}, f"{key} = 0") for key in ("contrastive", "ranked", "max_tokens")),
    ("permuted", {"min_ranked": 0}, "min_ranked = 0"),
    ("dissent", {"markers": ("and", "and")}, "markers: "),
    ("dissent", {"near_duplicates": 3.0}, "near_duplicates = 3.0"),
    ("dissent", {"near_duplicates": 1.0}, "near_duplicates = 1.0"),
    ("dissent", {"balanced_cap": -1}, "balanced_cap = -1"),
    ("dissent", {"validation": -0.1}, "validation = -0.1"),
    ("dissent", {"train": float("nan")}, "train = nan"),
    ("conpono", {"merge_above": -1}, "merge_above = -1"),
    ("conpono", {"min_sentences": 0}, "min_sentences = 0"),
    ("criteria", {"bins": 0}, "bins = 0"),
    ("criteria", {"bins": 200}, "bins = 200"),
    ("criteria", {"min_sentences": 0}, "min_sentences = 0"),
    ("rst", {"validation_documents": -1}, "validation_documents = -1"),
    ("pdtb_implicit", {"level": 4}, "level = 4: expected 3 or less"),
    ("pdtb_implicit", {"sections": "wsj"}, "sections = 'wsj': expected 'discoeval', 'dissent', "),
    ("pdtb_implicit", {"senses": "some"}, "senses = 'some': expected 'first' or 'all'"),
    ("pdtb_implicit", {"min_count": -1}, "min_count = -1: expected 0 or more"),
    ("pdtb_implicit", {"table": "no.tsv"}, "table: no.tsv: no table of splits"),
    ("pdtb_implicit", dict.fromkeys(SPLITS, 0), "train, validation and test = 0.0, 0.0, 0.0"),
]


@pytest.mark.parametrize(("name", "settings", "said"), REFUSED)
def test_values_that_cannot_be_are_named_at_their_place(name, settings, said):
    with pytest.raises(ConfigError) as caught:
        BUILDERS.find(name).of(settings, "build.toml:7")
    assert str(caught.value).startswith(f"build.toml:7: {said}")


def test_more_rows_than_fit_in_memory_come_in_the_same_order(tmp_path):
    query = "select sha256(range::varchar) as text from range(500000) order by text"
    hashes = []
    for threads, memory, spills in ((1, "512MB", False), (2, "48MB", True)):
        digest = hashlib.sha256()
        with Engine(tmp_path, threads=threads, memory=memory) as engine:
            for number, batch in enumerate(engine.batches(query)):
                digest.update("".join(batch["text"].to_pylist()).encode())
                if number == 0:
                    assert any((tmp_path / ".spill").rglob("*")) == spills
        hashes.append((number, digest.hexdigest()))
    assert hashes[0] == hashes[1]
    assert not (tmp_path / ".spill").exists()


def test_a_memory_limit_that_is_too_low_is_said(tmp_path):
    with (
        Engine(tmp_path, threads=4, memory="4MB") as engine,
        pytest.raises(DiscorporaError, match="more than the memory limit"),
    ):
        engine.rows(
            "select md5(i::varchar) as key, list(i) from range(300_000) t(i) "
            "group by key order by key"
        )
