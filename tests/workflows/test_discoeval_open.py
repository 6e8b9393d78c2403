"""The build file `discoeval_open`: DiscoEval's released files, and its SP of Wikipedia mended."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from corpora.store.manifest import read_manifest
from tests.corpora.conftest import write_jsonl
from tests.miniature.prose import Prose
from tests.miniature.released import SPLITS, lines, write_discoeval
from workflows.config import config_path
from workflows.tasks.build import run_build
from zoo.evaluate.discoeval.data import find

OPEN = ["bso_arxiv", "bso_wiki", "dc_chat", "dc_wiki", "sp_arxiv", "sp_wiki", "sp_wiki_mended"]
STORIES = list(Prose(5).stories(6, paragraphs=2, length=5))
"""Six articles; the first paragraph of each is its introduction."""
INTRODUCTIONS = [[s.tokenised for s in story.paragraphs[0]] for story in STORIES]


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Path, str], Any]:
    """`load_dataset`, with a cache of this test's own."""
    from datasets import load_dataset

    return lambda folder, config: load_dataset(str(folder), config, cache_dir=str(tmp_path))


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The datasets of the shipped build file, with articles in the place of a dump."""
    folder, shuffled = tmp_path_factory.mktemp("data"), random.Random(1)
    write_discoeval(folder, examples=6)
    (folder / "DiscoEval" / "data").rename(folder / "discoeval")
    rows: list[list[Any]] = []
    for number, sentences in enumerate(INTRODUCTIONS):
        moved = number % 5
        rest = sentences[:moved] + sentences[moved + 1 :]
        shuffled.shuffle(rest)
        rows.append([moved, sentences[moved], *rest])
    for split in SPLITS:
        lines(folder / "discoeval" / "SP" / "wiki" / f"{split}.txt", rows)
    # The last introduction is of an article that is not there.
    articles = [{"id": story.name, "text": story.text} for story in STORIES[:-1]]
    write_jsonl(folder / "articles.jsonl", *articles)
    # The shipped file, with the source that is a comment in it
    shipped = config_path("discoeval_open").read_text(encoding="utf-8")
    head, mark, tail = shipped.partition("# [[sources]]\n")
    block, blank, tail = tail.partition("\n\n")
    block = f"\n{mark}{block}".replace("\n# ", "\n")
    text = f"{head}{block}{blank}{tail}"
    dump = "wikipedia:{data}/enwiki-pages-articles.xml.bz2"
    assert dump in text
    config = folder / "mine.toml"
    text = text.replace(dump, "jsonl:{data}/articles.jsonl").replace(
        'data = ""', f'data = "{folder}"'
    )
    config.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DISCORPORA_DATA", raising=False)
        assert run_build(str(config), str(folder / "out"), workers=1) == 0
    return folder / "out" / "discoeval_open" / "datasets"


def test_the_open_tasks_load_and_say_what_they_are(
    datasets: Path, load: Callable[..., Any]
) -> None:
    folder = datasets / "discoeval"
    manifest = read_manifest(folder / "manifest.json")
    assert sorted(manifest["configs"]) == OPEN
    assert manifest["licence"]["id"] == "CC-BY-SA-3.0" and manifest["licence"]["redistributable"]
    pairs = load(folder, "bso_wiki")["validation"]
    assert pairs.features["label"].names[pairs[1]["label"]] == "swapped"
    assert (pairs[0]["sentence1"], pairs[0]["pair"]) == (pairs[1]["sentence2"], pairs[1]["pair"])
    benchmark = yaml.safe_load((folder / "eval.yaml").read_text(encoding="utf-8"))
    assert sorted(task["config"] for task in benchmark["tasks"]) == OPEN
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "in no order" in card and "license: cc-by-sa-3.0" in card
    assert (folder / "audit.json").is_file()


def test_what_may_not_be_passed_on_is_for_this_machine(datasets: Path) -> None:
    manifest = read_manifest(datasets / "discoeval_local" / "manifest.json")
    assert sorted(manifest["configs"]) == ["bso_rocstory", "sp_rocstory", "ssp_abs"]
    assert set(manifest["licences"]) == {"research-only", "unknown"}
    assert not manifest["licence"]["redistributable"]


def test_the_mended_rows_have_the_order_of_their_article(
    datasets: Path, load: Callable[..., Any]
) -> None:
    manifest = read_manifest(datasets / "discoeval" / "manifest.json")
    assert manifest["rejects"]["order_unknown"] == len(SPLITS)
    released, mended = (load(datasets / "discoeval", c) for c in ("sp_wiki", "sp_wiki_mended"))
    known = INTRODUCTIONS[:-1]
    for split in released:
        texts = []
        for row in mended[split]:
            first, *rest = row["sentences"]
            texts.append([*rest[: row["label"]], first, *rest[row["label"] :]])
        assert texts == known
        assert mended[split]["id"] == released[split]["id"][: len(known)]
        assert released[split]["sentences"][: len(known)] != mended[split]["sentences"]


def test_each_configuration_is_a_domain_of_the_suite(datasets: Path) -> None:
    found = {task.name for task in find(str(datasets)).tasks}
    parts = [*OPEN, "ssp_abs", "sp_roc", "bso_roc"]
    names = (part.partition("_") for part in parts)
    assert found == {f"{task.upper()} {domain}" for task, _, domain in names}
    (task,) = find(f"{datasets / 'discoeval'}@dc_chat").tasks
    assert task.name == "DC chat" and task.splits["test"].units[:4].tolist() == [1, 1, 2, 2]
    (local,) = find(str(datasets / "discoeval_local"), ["SSP"]).tasks
    assert local.labels == ("body", "abstract")
