"""A build divides its documents once: its stages, their settings, and what evaluations count."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpora.errors import ConfigError
from corpora.readers import open_source
from corpora.splits import SPLITS
from tests.workflows.conftest import TINY
from tests.workflows.test_config import CHAIN, graph
from tests.workflows.test_papers import in_this_process
from workflows import training
from workflows.cli.show import plan
from workflows.settings import options
from workflows.tables import SAMPLE
from workflows.tasks import Dataset, Divide, Evaluate

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
MORE = """
[[sources]]
name = "abstracts"
spec = "sample:abstracts"
datasets = DATASETS
"""


FEW = TINY.partition("[[validation]]")[0] + "[datasets.sp]\n[datasets.bso]\n"
FEW = FEW.replace(', "permuted"', "").replace('"dissent", ', "")


@pytest.fixture
def divided(run_luigi: Callable, tmp_path: Path) -> Callable[[Path], Path]:
    """The table of the division of a build file, which alone is made."""

    def divide(config: Path) -> Path:
        done = run_luigi(config, task="Divide")
        assert done.returncode == 0, done.stderr
        with options(str(config), str(tmp_path / "out"), looking=True):
            return Divide(config=str(config)).folder / "division.parquet"

    return divide


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {title for title in after if after[title] != before.get(title)}


def test_the_division_depends_on_the_documents_of_datasets(
    write_config: Callable[[str], Path], graph: Callable
) -> None:
    before = graph(write_config(ANNOTATED))
    # A source that only a builder of its own kind reads, and one that nothing draws on.
    others = '[datasets.coherence_tests]\n[[sources]]\nname = "endings"\nspec = "SPEC"\n'
    spec = "storycloze:{sample}/tests/storycloze.csv"
    direct = ANNOTATED + others.replace("SPEC", spec) + 'datasets = ["coherence_tests"]\n'
    unused = ANNOTATED + others.replace("SPEC", "sample:abstracts")
    for text in (direct, unused):
        assert graph(write_config(text))["division"] == before["division"]
    added = graph(write_config(ANNOTATED + MORE.replace("DATASETS", '["conpono"]')))
    assert {"division", "dataset sp"} <= changed(before, added)
    assert not {t for t in changed(before, added) & before.keys() if t.startswith("parse ")}


def test_the_order_of_sources_and_settings_of_sentences_change_no_division(
    write_config: Callable[[str], Path], graph: Callable
) -> None:
    before = graph(write_config(TINY))
    head, stories, news = TINY.partition("[[validation]]")[0].split("[[sources]]")
    rest = TINY.partition("[[validation]]")[2]
    turned = f"{head}[[sources]]{news}[[sources]]{stories}[[validation]]{rest}"
    assert not changed(before, graph(write_config(turned)))
    lines = f"{TINY}[sentences]\nsplitter = 'lines'\n"
    after = graph(write_config(lines))
    assert after["division"] == before["division"]
    assert after["dataset sp"] != before["dataset sp"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[datasets.sp]",
            "[splits]\ntrain = -1\n[datasets.sp]",
            "splits: train, validation and test = -1.0",
        ),
        ("[datasets.sp]", "[splits]\ntrain = 0.9\n[datasets.sp]", "add up to 1.1"),
        ("[datasets.sp]", "[splits]\ndev = 0.1\n[datasets.sp]", "unknown key 'splits.dev'"),
        (
            "[datasets.permuted]",
            "[datasets.permuted]\ntest = 0.3",
            "datasets.permuted.test: test = 0.3: this dataset has no shares of its own",
        ),
        (
            "[datasets.sp]",
            "[datasets.sp]\ntest = 1.0",
            "datasets.sp.test: test = 1.0: this dataset has numbers of rows (integers)",
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


def test_one_document_in_two_sources_of_a_dataset_is_said_before_a_parse(
    write_config: Callable[[str], Path], run_luigi: Callable, divided: Callable, tmp_path: Path
) -> None:
    folders = [tmp_path / "books" / name for name in ("emma", "persuasion")]
    for folder in folders:
        folder.mkdir(parents=True)
        text = f"It rained in {folder.name}, so we stayed. Nobody came because it was late."
        (folder / "01.txt").write_text(text, encoding="utf-8")
    two = TINY.replace("sample:stories", f"text:{folders[0]}").partition("[[validation]]")[0]
    two = two.replace("sample:news", f"text:{folders[1]}") + "[datasets.dissent]\n"
    two = two.replace(', "sp", "bso", "permuted"', "").replace(', "bso", "permuted"', "")
    done = run_luigi(write_config(two))
    said = "news, stories: two documents have the id '01', and the dataset 'dissent' draws on both"
    assert done.returncode != 0
    assert said in done.stderr and 'options = { id_prefix = "NAME/" }' in done.stderr
    assert done.stderr.index(said) < done.stderr.index("parse ")
    # The way out that the message names.
    marked = two.replace("/books/", "/books/./")
    assert divided(write_config(marked)).is_file()


def split_of_documents(table: Path) -> dict[str, str]:
    return {row["doc"]: SPLITS[row["split"]] for row in pq.read_table(table).to_pylist()}


def test_a_division_is_kept_when_a_source_comes_to_it(
    write_config: Callable[[str], Path], divided: Callable, tmp_path: Path
) -> None:
    table = Path(shutil.copy(divided(write_config(FEW)), tmp_path / "kept.parquet"))
    before = split_of_documents(table)
    more = FEW + MORE.replace("DATASETS", '["sp", "bso"]')
    after = split_of_documents(divided(write_config(f'{more}[splits]\ntable = "{table}"\n')))
    assert before.items() < after.items()
    assert {after[name] for name in after.keys() - before.keys()} == set(SPLITS)
    # Without the table the same sources are divided otherwise.
    assert not before.items() <= split_of_documents(divided(write_config(more))).items()


def test_a_table_of_splits_counts_by_its_contents(
    write_config: Callable[[str], Path], graph: Callable, tmp_path: Path
) -> None:
    before = graph(write_config(TINY))
    table = tmp_path / "table.tsv"
    table.write_text("test\ta\n", encoding="utf-8")
    config = write_config(TINY + f'[splits]\ntable = "{table}"\n')
    one = graph(config)
    assert "division" in changed(before, one)
    table.write_text("dev\ta\n", encoding="utf-8")
    assert "division" in changed(one, graph(config))
    table.write_text("dev\ta\ntest\ta\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"splits.table: .*table.tsv:2: the document 'a' is in"):
        graph(config)


def test_a_table_of_other_documents_and_one_in_the_output_are_refused(
    write_config: Callable[[str], Path], run_luigi: Callable, divided: Callable, tmp_path: Path
) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("test\tnobody\n", encoding="utf-8")
    done = run_luigi(write_config(FEW + f'[splits]\ntable = "{table}"\n'))
    assert done.returncode != 0
    assert "table.tsv: names no document of this build\n" in done.stderr
    assert not (tmp_path / "out" / "tiny").exists()
    own = divided(write_config(FEW))
    ids = [*split_of_documents(own), "nobody"]
    table.write_text("".join(f"train\t{id}\n" for id in ids))
    done = run_luigi(write_config(FEW + f'[splits]\ntable = "{table}"\n'))
    assert done.returncode != 0
    assert "table.tsv: documents that are not in this build: 1, such as 'nobody'\n" in done.stderr
    assert "table.tsv: leaves the split 'validation' without documents\n" in done.stderr
    done = run_luigi(write_config(FEW + f'[splits]\ntable = "{own}"\n'))
    assert done.returncode != 0
    assert f"splits.table: {own}: is the division of a build in this" in done.stderr
    # A copy may lie where the builds are.
    copy = shutil.copy(own, tmp_path / "out" / "kept.parquet")
    assert divided(write_config(FEW + f'[splits]\ntable = "{copy}"\n')).is_file()


def test_a_table_of_splits_names_whole_books(
    write_config: Callable[[str], Path], divided: Callable, tmp_path: Path
) -> None:
    books, table = tmp_path / "books", tmp_path / "table.tsv"
    books.mkdir()
    chapter = "The boat left at nine. Nobody saw it go. It came back at night.\n\n"
    for name in "abcdef":
        text = "".join(f"CHAPTER {number}\n\n{chapter * 3}" for number in ("I", "II", "III"))
        (books / f"{name}.txt").write_text(text)
    source = f'[[sources]]\nname = "books"\nspec = "text:{books}"\ndatasets = ["sp"]\n'
    chapters = 'options = { chapters = "CHAPTER [IVX]+" }\n'
    text = f'name = "tiny"\n{source}{chapters}[datasets.sp]\n'
    ids = [*split_of_documents(divided(write_config(text)))]
    names = {name for name in ids if name.startswith("c")}
    one = min(names)
    table.write_text(f"dev\tb\ntest\tc\ntrain\t{one}\n")
    splits = split_of_documents(divided(write_config(f'{text}[splits]\ntable = "{table}"\n')))
    assert len(names) == 3 and len(ids) == 18
    assert {splits[name] for name in splits if name.startswith("b")} == {"validation"}
    assert {name: splits[name] for name in names} == {**dict.fromkeys(names, "test"), one: "train"}


def test_the_build_file_of_a_card_makes_the_same_dataset(
    write_config: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The table is published with the dataset, for the folder of data.
    table = tmp_path / "table.tsv"
    first = next(open_source("sample:stories")).id
    table.write_text(f"test\t{first}\n", encoding="utf-8")
    monkeypatch.setenv("DISCORPORA_DATA", str(tmp_path))
    said = 'title = "The \\"pier\\""\nauthors = ["A", "B"]\noptions = { group = "book" }\n'
    text = ANNOTATED.replace('spec = "sample:stories"\n', f'spec = "sample:stories"\n{said}')
    config = write_config(f'{text}[splits]\ntrain = 0.6\ntest = 0.3\ntable = "{table}"\n')
    with options(str(config), str(tmp_path / "out"), looking=True):
        made = {name: Dataset(config=str(config), name=name) for name in ("sp", "dissent")}
    for name, task in made.items():
        assert [*task.build_files()] == [table]
        again = tmp_path / f"{name}.toml"
        again.write_text(task.build_file(), encoding="utf-8")
        with options(str(again), str(tmp_path / "out"), looking=True):
            assert Dataset(config=str(again), name=name).hash == task.hash
        assert str(tmp_path) not in task.build_file()


def test_what_is_only_said_of_a_source_makes_another_card_and_no_other_model(
    write_config: Callable[[str], Path], graph: Callable
) -> None:
    before = graph(write_config(CHAIN))
    assert CHAIN.count('spec = "sample:news"') == 1
    said = 'spec = "sample:news"\ntitle = "News"\nauthors = ["Ada"]'
    after = changed(before, graph(write_config(CHAIN.replace('spec = "sample:news"', said))))
    assert {title for title in after if title.startswith("dataset ")}
    kinds = {title.partition(" ")[0] for title in after}
    assert not kinds & {"documents", "sentences", "parse", "pairs", "division", "model"}


def test_splits_change_every_dataset_and_no_parse(
    write_config: Callable[[str], Path], graph: Callable
) -> None:
    before = graph(write_config(ANNOTATED))
    after = changed(before, graph(write_config(ANNOTATED + "[splits]\ntrain = 0.6\ntest = 0.3\n")))
    assert {title for title in before if title.startswith("dataset ")} <= after
    assert not {title for title in after if title.startswith(("parse ", "sentences "))}


JUDGED = (
    TINY
    + """
[splits]
train = 0.6
validation = 0.2
test = 0.2

[[sources]]
name = "gold"
spec = "pdtb:{sample}/gold"
datasets = ["pdtb_marked", "again"]

[datasets.pdtb_marked]

# Here a table of splits wins over the division.
[datasets.again]
builder = "pdtb_marked"
table = "TABLE"

[models.bilstm]
recipe = "dissent/bilstm_tiny"
dataset = "dissent"
config = "all"
settings = { max_steps = 2 }

[evaluations.held-out]
suite = "pdtb"
models = ["bilstm"]
dataset = "pdtb_marked"
settings = { protocol = "sentences" }

[evaluations.trained-on]
suite = "pdtb"
models = ["bilstm"]
dataset = "again"
limit = 20
settings = { protocol = "sentences" }
"""
)


def test_a_build_holds_out_the_same_documents_in_all_its_datasets(
    write_config: Callable[[str], Path],
    run_luigi: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "_run", in_this_process)
    table = tmp_path / "table.tsv"
    names = sorted(document.id for document in open_source(f"pdtb:{SAMPLE}/gold"))
    parts = (f"{SPLITS[i % 3]}\t{name}\n" for i, name in enumerate(names))
    table.write_text("".join(parts), encoding="utf-8")
    config = write_config(JUDGED.replace("TABLE", str(table)))
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
    with options(str(config), str(tmp_path / "out"), looking=True):
        counts = {
            on: Evaluate(config=str(config), name="bilstm", on=on).manifest()["counts"]
            for on in ("held-out", "trained-on")
        }
        details = Dataset(config=str(config), name="permuted").manifest()["details"]
    assert counts["held-out"]["rows_seen"] == 0 < counts["held-out"]["rows"]
    assert 0 < counts["trained-on"]["rows_seen"] < counts["trained-on"]["rows"]
    assert [details["settings"][split] for split in SPLITS] == [0.6, 0.2, 0.2]
    assert "one division for all datasets of the build (train 0.6" in details["split"]["reason"]
    with options(str(config), str(tmp_path / "out"), looking=True):
        manifest = Dataset(config=str(config), name="sp").manifest()
    # The division has read all sources; in the dataset are the texts of one.
    assert [source["name"] for source in manifest["sources"]] == ["stories"]
    report = (tmp_path / "out" / "tiny" / "report" / "report.md").read_text(encoding="utf-8")
    assert report.count("was trained on documents of") == 1
    assert report.count("| n, examples judged here | ") == report.count("### pdtb: ") == 2
    for section in ("Training", "Models and baselines", "Confusion matrices"):
        assert f"\n## {section}\n" in report


def test_what_a_model_starts_from_counts_as_training(
    write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    config = str(write_config(CHAIN))
    with options(config, str(tmp_path / "out"), looking=True):
        task = Evaluate(config=config, name="second", on="elsewhere")
        learned = [(dataset.name, of) for dataset, of in task.training_datasets()]
        assert learned == [("permuted", "contrastive"), ("dissent", "all")]
        assert {d for d, _ in task.training_datasets()} <= {*task.requires()}


def test_a_build_and_its_plan_say_that_groups_are_divided(
    write_config: Callable[[str], Path],
    run_luigi: Callable,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ten chapters of one book cannot be kept together."""
    chapter = " ".join(f"The mill turned {i} times. We counted them again." for i in range(40))
    rows = [{"id": f"c{i}", "text": chapter, "book": "mill"} for i in range(10)]
    (tmp_path / "book.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    source = f'spec = "jsonl:{tmp_path / "book.jsonl"}"\noptions = {{ group = "book" }}\n'
    text = f'name = "tiny"\n[[sources]]\nname = "b"\n{source}datasets = ["sp"]\n[datasets.sp]\n'
    done = run_luigi(config := write_config(text), task="Divide")
    assert "such as chapters of a book, are in several splits" in done.stderr
    few = "few documents to divide: 1 in validation, 1 in test"
    assert few in done.stderr
    for output in (tmp_path / "out", tmp_path / "fresh"):  # after the division, and before it
        plan(str(config), str(output))
        first, second, rest = capsys.readouterr().out.partition("warning: ")[2].split("\n\n")
        assert first.startswith(few) and second.startswith("warning: documents of one group")
        assert rest == "every input is here\n"
    assert not (tmp_path / "fresh").exists()


def test_other_numbers_of_articles_than_the_papers_are_told(tmp_path, divided):
    """The coherence paper counts the articles of its splits."""
    for section in (0, 5, 13, 14, 24):
        for number in range(1, 5):
            path = tmp_path / f"raw/{section:02}/wsj_{section:02}{number:02}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(".START \n\nThe mill was sold.\nIt stood near the river.\n")
    config = tmp_path / "build.toml"
    config.write_text(
        f'name = "wsj"\n[[sources]]\nname = "articles"\nspec = "wsj:{tmp_path}/raw"\n'
        'splitter = "source"\nsplits = "coherence"\ndatasets = ["permuted"]\n[datasets.permuted]\n'
    )
    manifest = json.loads((divided(config).parent / "manifest.json").read_text())
    assert manifest["counts"]["documents"] == {"train": 10, "validation": 2, "test": 8}
    said = "10 / 2 / 8 documents (train / validation / test), where the paper counts 1,240 / 138"
    assert said in manifest["counts"]["reason"]
