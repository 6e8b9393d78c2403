"""A build divides its documents once: its stages, their settings, and what evaluations count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpora.errors import ConfigError
from tests.workflows.conftest import TINY
from tests.workflows.test_config import _fresh, graph
from workflows import preflight
from workflows.config import load_build
from workflows.runner import options
from workflows.tasks import Dataset, Evaluate

__all__ = ["graph"]

ANNOTATED = (
    TINY
    + """
[[sources]]
name = "gold"
spec = "pdtb:{sample}/gold"
datasets = ["pdtb_marked"]

[datasets.pdtb_marked]
[datasets.conpono]
"""
)
NEWS = 'datasets = ["dissent", "bso", "permuted"]'
MORE = """
[[sources]]
name = "abstracts"
spec = "sample:abstracts"
datasets = DATASETS
"""


def divisions(hashes: dict[str, str]) -> dict[str, str]:
    return {title: of for title, of in hashes.items() if title.startswith("division ")}


def test_sources_are_divided_with_those_that_serve_the_same(
    write_config: Callable[[str], Path], graph: Callable
) -> None:
    before = graph(write_config(ANNOTATED))
    assert set(divisions(before)) == {"division stories", "division news", "division gold"}
    # Datasets in another order are the same.
    alike = ANNOTATED + MORE.replace("DATASETS", '["permuted", "bso", "dissent"]')
    after = _fresh(graph, write_config(alike))
    assert set(divisions(after)) == set(divisions(before))
    assert after["division news"] != before["division news"]
    assert after["division stories"] == before["division stories"]
    assert after["dataset sp"] == before["dataset sp"]
    assert after["dataset bso"] != before["dataset bso"]
    apart = _fresh(graph, write_config(ANNOTATED + MORE.replace("DATASETS", '["conpono"]')))
    assert divisions(apart).items() > divisions(before).items()
    assert apart["dataset bso"] == before["dataset bso"]


def test_a_family_is_divided_together(write_config: Callable[[str], Path], graph: Callable) -> None:
    text = ANNOTATED.replace(NEWS, f'{NEWS}\nfamily = "news"')
    text = text.replace('["pdtb_marked"]', '["pdtb_marked"]\nfamily = "news"')
    found = graph(write_config(text))
    assert set(divisions(found)) == {"division stories", "division news"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (NEWS, f'{NEWS}\nfamily = "nwes"', "source news: no other source is of the family 'nwes'"),
        ("[datasets.sp]", "[splits]\ntrain = -1\n[datasets.sp]", "splits: train = -1"),
        ("[datasets.sp]", "[splits]\ndev = 0.1\n[datasets.sp]", "unknown key 'splits.dev'"),
        (
            "[datasets.permuted]",
            "[datasets.permuted]\ntest = 0.3",
            "datasets.permuted: test = 0.3: a dataset has no shares of its own",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    write_config: Callable[[str], Path], graph: Callable, old: str, new: str, message: str
) -> None:
    text = ANNOTATED.replace(old, new)
    assert text != ANNOTATED
    with pytest.raises(ConfigError) as error:
        graph(write_config(text))
    assert message in str(error.value)


def test_splits_change_every_dataset_and_no_parse(
    write_config: Callable[[str], Path], graph: Callable
) -> None:
    before = graph(write_config(ANNOTATED))
    after = _fresh(graph, write_config(ANNOTATED + "[splits]\ntest = 0.3\n"))
    changed = {title for title in after if after[title] != before[title]}
    assert {title for title in before if title.startswith("dataset ")} <= changed
    assert not {title for title in changed if title.startswith(("parse ", "sentences "))}


def test_gum_and_its_annotations_are_one_family(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DISCOFORGE_DATA", str(tmp_path))
    build = load_build("open")
    assert {build.family(build.source(n)) for n in ("gum", "gdtb", "erst")} == {"gum"}


JUDGED = (
    TINY
    + """
[splits]
train = 0.6
validation = 0.2
test = 0.2

[models.ngram]
recipe = "dissent/ngram"
dataset = "dissent"
config = "all"

[models.scorer]
recipe = "coherence/contrastive_tiny"
dataset = "permuted"
config = "contrastive"
settings = { max_steps = 2 }

[evaluations.held-out]
suite = "permuted"
models = ["scorer"]
dataset = "permuted@pairwise"

# The stories once more, divided with other documents.
[[sources]]
name = "again"
spec = "sample:stories"
datasets = ["again"]

[[sources]]
name = "articles"
spec = "sample:articles"
datasets = ["again"]

[datasets.again]
builder = "permuted"

[evaluations.trained-on]
suite = "permuted"
models = ["scorer"]
dataset = "again@pairwise"
limit = 10
"""
)


def test_a_build_holds_out_the_same_documents_in_all_its_datasets(
    write_config: Callable[[str], Path], run_luigi: Callable, tmp_path: Path
) -> None:
    config = write_config(JUDGED)
    done = run_luigi(config)
    assert done.returncode == 0, done.stderr
    split_of: dict[str, str] = {}
    datasets = tmp_path / "out" / "tiny" / "datasets"
    for path in sorted(datasets.glob("[!a]*/*/*.parquet")):
        table = pq.read_table(path)
        for column in {"doc", "document"} & set(table.column_names):
            for name in table[column].unique().to_pylist():
                split = path.name.partition("-")[0]
                assert split_of.setdefault(name.partition("#")[0], split) == split, (path, name)
    assert set(split_of.values()) == {"train", "validation", "test"}
    with options(str(config), str(tmp_path / "out")), preflight.planning():
        counts = {
            on: Evaluate(config=str(config), name="scorer", on=on).manifest()["counts"]
            for on in ("held-out", "trained-on")
        }
        shares = Dataset(config=str(config), name="permuted").manifest()["details"]["settings"]
    assert counts["held-out"]["rows_seen"] == 0 < counts["held-out"]["rows"]
    assert 0 < counts["trained-on"]["rows_seen"] < counts["trained-on"]["rows"]
    assert [shares[split] for split in ("train", "validation", "test")] == [0.6, 0.2, 0.2]
    report = (tmp_path / "out" / "tiny" / "report" / "report.md").read_text(encoding="utf-8")
    assert report.count("was trained on documents of") == 1
