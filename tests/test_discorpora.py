"""`import discorpora`: what its functions take and give, and whose packages it finds."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import discorpora
from corpora.document import Document
from corpora.errors import ConfigError, DiscorporaError, InputError
from tests.processes import ran
from zoo.evaluate.results import Result

ROOT = Path(__file__).resolve().parent.parent
TEXT = "The pier was wet because the tide was high."
OTHER = "Ines packed a lamp. The bridge was closed, so they turned back."


def markers(*arguments: object, **settings: object) -> list[tuple[str, str]]:
    return [(p.doc, p.marker) for p in discorpora.extract(*arguments, **settings)]


def test_extract_takes_texts_sources_files_and_documents(tmp_path: Path) -> None:
    (tmp_path / "draft.txt").write_text(TEXT, encoding="utf-8")
    assert markers(TEXT) == [("text-1", "because")]
    assert markers([TEXT, OTHER]) == [("text-1", "because"), ("text-2", "so")]
    assert markers([Document("mine", OTHER), TEXT]) == [("mine", "so"), ("text-2", "because")]
    for source in (tmp_path / "draft.txt", str(tmp_path / "draft.txt"), f"text:{tmp_path}"):
        assert [marker for _, marker in markers(source)] == ["because"]
    assert markers([TEXT, OTHER], markers="so") == [("text-2", "so")]


@pytest.mark.parametrize("source", ["txt:books/", "books/", "text:no such folder"])
def test_a_source_that_is_not_there_is_not_taken_for_a_text(source: str) -> None:
    with pytest.raises(InputError, match=r"text:|no such"):
        markers(source)


def test_a_wrong_setting_is_an_error_before_the_first_pair() -> None:
    with pytest.raises(ConfigError, match="did you mean 'standalone'"):
        discorpora.extract(TEXT, mode="standalon")
    with pytest.raises(ConfigError, match="epoch"):
        discorpora.train("dissent/ngram", "data", "model", epoch=3)
    with pytest.raises(ConfigError, match="tasks"):
        discorpora.evaluate("discoeval", "model", "data", task="SP")


def test_build_takes_a_dictionary_and_load_reads_the_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    source = {"name": "stories", "spec": "sample:stories", "datasets": ["permuted"]}
    tables = {"name": "mine", "sources": [source], "datasets": {"permuted": {}}}
    folder = discorpora.build(tables, tmp_path)
    assert folder == tmp_path / "mine" and (tmp_path / "mine.toml").is_file()
    rows = discorpora.load(f"{folder / 'datasets' / 'permuted'}@pairwise")
    assert rows["train"].column_names == ["document", "repetition", "orders"]
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}", encoding="utf-8")
    for place in ("model", "nowhere"):
        with pytest.raises(InputError, match="give a dataset's folder"):
            discorpora.load(tmp_path / place)
    with pytest.raises(DiscorporaError, match="dataset"):
        discorpora.build({**tables, "datasets": {}}, tmp_path)


def test_results_in_hand_are_compared_as_their_files_are(tmp_path: Path) -> None:
    from corpora.store.atomic import write_json

    results, files = [], []
    for name, value in (("one", 0.8), ("two", 0.6)):
        dataset = {"name": "orders", "config": "pairwise", "revision": "r1"}
        rules = {rule: {"value": 0.5, "n": 90} for rule in ("shorter", "longer")}
        metrics = {"accuracy": {"value": value, "n": 90}, "baselines": rules}
        protocol = {"readers": ("one", "two")}
        model = {"name": name, "type": "t"}
        results.append(Result(model, dataset, 90, metrics, protocol, suite="permuted"))
        files.append(tmp_path / f"{name}.json")
        write_json(files[-1], results[-1].as_json())
    of_files = discorpora.compare(*files).render()
    assert of_files == discorpora.compare(*results).render()
    assert of_files == discorpora.compare(files[0], results[1]).render()


def test_score_takes_texts_as_strings_or_sentences() -> None:
    from zoo.coherence import load_scorer

    scorer = load_scorer()
    whole, sentences = discorpora.score([OTHER, OTHER.split(" ", 4)], scorer)
    assert discorpora.score(OTHER, scorer) == pytest.approx([whole], abs=1e-6)
    assert sentences != whole


@pytest.mark.parametrize("name", ["extract", "zoo"])
def test_a_file_that_hides_a_package_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("", encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = ran(
        [sys.executable, "-m", "discorpora", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode and "ImportError" in done.stderr
    assert f"{tmp_path / name}.py" in done.stderr and "rename" in done.stderr
    (tmp_path / f"{name}.py").unlink()
