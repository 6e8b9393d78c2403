"""A paper's table from one build file: seeds, a sweep, an encoder as it is, published numbers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from corpora.errors import ConfigError, DiscorporaError
from corpora.schemas import MARKERS_ALL
from tests.workflows.conftest import ROOT
from tests.zoo.conftest import write_tiny_bert
from tests.zoo.test_discoeval import write_trees
from workflows import training
from workflows.cli.app import app
from workflows.config import load_build
from workflows.papers import Filled, Line, filled
from workflows.report.blocks import Figure, Table, Text
from workflows.report.latex import latex_of
from workflows.report.papers import as_json, blocks, latex, text
from workflows.report.stages import Made
from workflows.settings import options
from workflows.tasks import BuildAll
from zoo.declared import ENCODES
from zoo.evaluate import SUITES, confusions
from zoo.evaluate.discoeval import texts as texts_of
from zoo.evaluate.encoders import load_vectors
from zoo.evaluate.opening import open_model
from zoo.evaluate.published import paper_tables
from zoo.evaluate.table import Cell
from zoo.options import Assignment

MODELS = """
name = "tiny"
seed = 5
threads = 1

[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["dissent", "sp"]

[datasets.dissent]
[datasets.sp]

[models.words]
recipe = "dissent/ngram"
dataset = "dissent"
config = "all"
seeds = 2
settings = { iterations = 3, min_texts = 2, grid = [1.0] }
sweep = { min_texts = [1, 2] }

[models.bert]
recipe = "pretrained"
settings = { backbone = "bert" }

[models.function]
recipe = "vectors"
settings = { vectors = "given.py" }

[models.table]
recipe = "vectors"
settings = { vectors = "given.parquet" }

[models.markers]
recipe = "dissent/transformer_tiny"
dataset = "dissent"
config = "all"
base = "bert"
suite = "dissent"
settings = { max_steps = 2, max_train_rows = 40, max_eval_rows = 20, backbone_config = {} }
limit = 20

[evaluations.held-out]
suite = "dissent"
models = ["words"]
dataset = "dissent@all"
limit = 20

[evaluations.tasks]
suite = "discoeval"
models = ["bert", "markers"]
dataset = ["sp"]
data = "discoeval:released"  # of RST-DT
limit = 10
settings = { seeds = 1, second_opinion = false, cache = "", layers = true }

[evaluations.given]
suite = "discoeval"
models = ["function", "table"]
data = "discoeval:released"
settings = { seeds = 1, second_opinion = false }
"""
GIVEN = """
import numpy as np

def encode(texts):
    return np.array([[len(text), text.count(",")] for text in texts], np.float32)
"""
BUILD = (
    MODELS
    + """
[[tables]]
table = "dissent:2"
rows = { "*" = ["dissent"] }

[[tables]]
table = "dissent:5"
rows = { Ngram-bow = ["words"], BERT = ["markers"] }
more = { "Words, min 1" = ["words.min_texts-1"], "Words by one seed" = ["words.2"] }

[[tables]]
table = "dissent:9"
rows = { "*" = ["words"] }

[[tables]]
table = "discoeval:2"
rows = { BERT-Base = ["bert"] }

[[tables]]
table = "discoeval:readme"
rows = { ELMo = ["function"], InferSent = ["table"] }

[[tables]]
table = "discoeval:3"
rows = { BERT-Base = ["bert"] }

[[tables]]
table = "discoeval:figure-8"
rows = { BERT-Base = ["bert"] }

[[tables]]
table = "conpono:8"
rows = { BERT-Base = ["bert"] }

[[tables]]
table = "coherence:figure-2d"
rows = { "Full Model" = ["markers"] }

[[tables]]
table = "dissent:figure-5"
rows = { BiLSTM = ["words"] }
"""
)
WORDS = ["words", "words.2", "words.min_texts-1", "words.min_texts-1.2"]


def command(*words: str) -> str:
    """What `discorpora` prints."""
    done = CliRunner().invoke(app, [*words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def table(name: str, *more: str, config: str = "build.toml") -> str:
    """What `discorpora report` prints of a paper's table."""
    return command("report", config, "--output", "out", "--table", name, *more)


def rows_of(name: str) -> dict[str, Any]:
    """The rows of a paper's table by name."""
    return {row["name"]: row for row in json.loads(table(name, "--json"))["rows"]}


def hashes(config: Path, text: str) -> dict[str, str]:
    config.write_text(text, encoding="utf-8")
    with options(str(config), str(config.parent / "out"), looking=True):
        return {task.title: task.hash for task in BuildAll(config=str(config)).lineage}


def in_this_process(
    module: str, assignments: Sequence[Assignment], *_: Any, **__: Any
) -> list[None]:
    """In place of `workflows.training._run`: the libraries are loaded once."""
    from zoo.evaluate.__main__ import evaluate_assignment
    from zoo.train import train_assignment

    for one in assignments:
        (train_assignment if module == "zoo.train" else evaluate_assignment)(one)
    return [None] * len(assignments)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the finished build `tiny`, its build file and its encoder."""
    folder = tmp_path_factory.mktemp("papers")
    write_tiny_bert(folder / "bert", ["It rained all day. We stayed inside because of it."])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        texts = texts_of(write_trees(folder / "released"))
        (folder / "given.py").write_text(GIVEN, encoding="utf-8")
        vectors = [[len(text), text.count(",")] for text in texts]
        pq.write_table(pa.table({"text": texts, "vector": vectors}), folder / "given.parquet")
        patch.setattr(training, "_run", in_this_process)
        patch.setattr(confusions, "save_pictures", lambda *_, **__: None)  # half of the time
        (folder / "build.toml").write_text(BUILD, encoding="utf-8")
        command("build", "--output", "out")
        yield folder


def test_seeds_and_a_sweep_are_models_of_their_own(built: Path) -> None:
    build = load_build(str(built / "build.toml"))
    assert [name for name in build.models if name.startswith("words")] == WORDS
    assert build.variants("words") == WORDS and build.variants("words.2") == ["words.2"]
    results = built / "out" / "tiny" / "models"
    others = {"bert", "markers", "function", "table"}
    assert {path.name for path in results.iterdir()} == {*WORDS, *others}
    seeds = [json.loads((results / w / "results.json").read_text())["seed"] for w in WORDS]
    assert seeds == [5, 6] * 2


def test_an_encoder_is_a_row_and_a_base(built: Path) -> None:
    folder = built / "out" / "tiny"
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        copy = (folder / "models" / "bert" / name).read_bytes()
        assert copy == (built / "bert" / name).read_bytes()
    for name in ("bert", "markers"):
        text = (folder / "evaluations" / "tasks" / name / "results.json").read_text()
        assert {"SP", "RST-DT"} == {*json.loads(text)["metrics"]["tasks"]}
    plan = json.loads(command("plan", "--config", str(built / "build.toml"), "--json"))
    (stage,) = (one for one in plan["stages"] if one["stage"] == "model bert")
    about = json.loads((folder / "models" / "markers" / "results.json").read_text())
    assert about["settings"]["backbone"] == stage["hash"] and stage["reads"] == []


def test_vectors_of_a_function_or_a_file_are_a_row(built: Path) -> None:
    rows = rows_of("discoeval:readme")
    assert rows["ELMo"]["ours"].keys() == {"RST-DT"}
    assert rows["ELMo"]["ours"] == rows["InferSent"]["ours"]


def test_another_function_is_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    by_content = []
    for content in (GIVEN, GIVEN.replace("len(text)", "0"), GIVEN):
        (tmp_path / "given.py").write_text(content, encoding="utf-8")
        by_content.append(hashes(tmp_path / "build.toml", BUILD)["model function"])
    first, second, third = by_content
    assert first == third != second


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "one.py",
            "def encoded(texts): ...",
            "has no function 'encode'.*\n.*did you mean 'encoded'",
        ),
        ("one.parquet", {"text": ["a"], "vectors": [[1.0]]}, "holds no vectors: .*vector"),
        (
            "one.parquet",
            {"text": ["a", "b"], "vector": [[1.0], [1.0, 2.0, 3.0]]},
            "different lengths",
        ),
        ("one.parquet", {"text": ["a"], "vector": [[float("nan")]]}, "gives vectors"),
    ],
)
def test_a_file_without_vectors_is_refused(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        pq.write_table(pa.table(content), path)
    with pytest.raises(DiscorporaError, match=f"(?s){message}"):
        load_vectors(path)


def test_every_suite_of_vectors_opens_a_function(tmp_path: Path) -> None:
    path = tmp_path / "given.py"
    path.write_text(GIVEN, encoding="utf-8")
    suites = [kind for name in SUITES.built_in if ENCODES in (kind := SUITES.find(name)).needs]
    assert len(suites) > 2
    assert {open_model(kind(), str(path)).name for kind in suites} == {"given"}


def test_the_commands_around_a_build_know_the_variants(built: Path) -> None:
    plan = json.loads(command("plan", "--output", "out", "--json"))
    states = {one["stage"]: one["state"] for one in plan["stages"]}
    assert {states[f"model {name}"] for name in WORDS} == {"done"} == {states["model bert"]}
    assert "words.min_texts-1.2" in command("status", "--output", "out")
    (built / "fewer.toml").write_text(MODELS.replace("seeds = 2\n", ""), encoding="utf-8")
    listed = command("prune", "fewer.toml", "--output", "out")
    assert "model/words.2" in listed and "model/words/" not in listed


def test_a_hash_depends_on_no_other_seed_or_value(tmp_path: Path) -> None:
    before = hashes(tmp_path / "a.toml", BUILD)
    changed = BUILD.replace("seeds = 2", "seeds = 3").replace("[1, 2]", "[1, 2, 3]")
    after = hashes(tmp_path / "b.toml", changed)
    assert all(before[f"model {name}"] == after[f"model {name}"] for name in WORDS)
    assert {"model words.3", "model words.min_texts-3.3"} <= after.keys() - before.keys()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[1, 2]", "[1, 'x y', 'x/y']", r"two models are named 'words.min_texts-x-y'"),
        ("[1, 2]", "[1], seed = [4]", "seeds have a key of their own"),
        ("[models.bert]", "[models.'words.2']", "two models are named 'words.2'"),
        ("[1, 2]", "[1, 2, 'many']", "build.toml:.*models.words.settings: min_texts = 'many'"),
        ('dataset = "dissent"\nconfig = "all"\nbase', "base", "models.markers: no dataset"),
        ('recipe = "pretrained"', 'recipe = "pretrained"\ndataset = "sp"', "takes no `dataset`"),
        ('backbone = "bert"', "", "models.bert.settings: .*'backbone'"),
        ('models = ["bert"', 'models = ["brt"', "did you mean 'bert'"),
        ('"dissent:5"', '"dissent:55"', "no table 'dissent:55'; did you mean 'dissent:5'"),
        ('"dissent:5"', '"coherence:6"', "coherence:6 .Results of UNC .* has no row for a model"),
        ("Ngram-bow =", "Ngrambow =", "no row 'Ngrambow'; did you mean 'Ngram-bow'"),
        ('BERT = ["markers"]', 'BERT = ["marker"]', "no model 'marker'; did you mean 'markers'"),
        ('BERT = ["markers"]', 'BERT = ["markers@task"]', "no evaluation 'task'"),
        ('"*" = ["dissent"]', '"*" = ["disent"]', "no dataset 'disent'; did you mean 'dissent'"),
        ('"dissent:9"', '"dissent:5"', "two .*tables.* are 'dissent:5'"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = BUILD.replace(old, new)
    assert text != BUILD
    with pytest.raises(ConfigError, match=message):
        hashes(tmp_path / "build.toml", text)


def test_the_plan_names_a_missing_encoder_and_loads_no_torch(tmp_path: Path) -> None:
    (tmp_path / "build.toml").write_text(BUILD.replace('"bert" }', '"nowhere/at/all" }'))
    code = (
        "import sys; from workflows.cli.app import app; "
        "app(['plan', '--output', 'out'], standalone_mode=False); "
        "assert not {'torch', 'transformers'} & {*sys.modules}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("backbone nowhere/at/all") == 1 and "no such folder" in done.stdout


def test_a_table_has_the_paper_s_numbers_beside_ours(built: Path) -> None:
    shown = table("dissent:5")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "Nie, Bennett and Goodman 2019, table 5" in lines[0]
    assert "Ngram-bow paper 28.1 51.8 44.0 58.1 54.1 63.3" in lines
    (ours,) = (after for line, after in pairwise(lines) if line.startswith("Ngram-bow"))
    assert re.fullmatch(r"ours [\d.]+ ± [\d.]+ [\d.]+ ± [\d.]+", ours)
    assert "BiLSTM paper 47.2 67.5 64.4 73.5 72.1 77.3" in lines
    assert lines.count("ours no model in this build") == 2
    assert any(re.match(r"Words by one seed ours [\d.]+ [(\[]", line) for line in lines)


def test_a_table_reads_numbers_that_no_suite_has_a_column_for(built: Path) -> None:
    rows = rows_of("dissent:9")
    result = built / "out" / "tiny" / "evaluations" / "held-out" / "words" / "results.json"
    recall = json.loads(result.read_text())["metrics"]["per_class"]["and"]["recall"]
    assert rows["and"]["ours"]["All Rec"]["value"] == pytest.approx(100 * recall, abs=50)
    assert rows["and"]["paper"]["Books 5 Rec"] == 71.4
    assert {"Avg", "Accuracy"} <= {name for name, row in rows.items() if row["ours"]}
    bert = rows_of("conpono:8")["BERT-Base"]
    model = built / "out" / "tiny" / "models" / "bert" / "results.json"
    parameters = json.loads(model.read_text())["parameters"]
    assert bert["ours"]["Parameters"]["value"] == pytest.approx(parameters / 1e6)


def test_a_heat_map_has_a_row_for_each_layer(built: Path) -> None:
    rows = rows_of("discoeval:figure-8")
    names = [*rows]
    assert names == ["ELMo", *(f"BERT-Base, layer {number}" for number in range(1, len(names)))]
    assert all(row["ours"].keys() == {"SP", "RST-DT"} for row in [*rows.values()][1:])
    best = table("discoeval:3")
    assert re.search(r"BERT-Base +paper +5.0 +8.9\n +ours +[\d.]+\n", best)


def test_a_table_counts_the_pairs_of_a_dataset_by_marker(built: Path) -> None:
    shards = (built / "out" / "tiny" / "datasets" / "dissent" / "all").rglob("*.parquet")
    labels = (label for shard in shards for label in pq.read_table(shard)["label"].to_pylist())
    markers = Counter(MARKERS_ALL[label] for label in labels)
    rows = rows_of("dissent:2")
    ours = {name: row["ours"]["Extracted Pairs"]["value"] for name, row in rows.items()}
    assert ours.pop("Total") == markers.total() > 0
    assert len(ours) == 15 and ours == {name: markers[name] for name in ours}
    assert 0 in ours.values()  # a marker without a pair has a number, too
    share = rows["but"]["ours"]["Percent (%)"]["value"]
    assert share == pytest.approx(100 * markers["but"] / markers.total())
    lines = [" ".join(line.split()) for line in table("dissent:2").splitlines()]
    assert "but paper 1028995 21.86" in lines and "Total paper 4706292 100.0" in lines
    assert f"ours {markers.total()} 100.0" in lines
    assert rf" & ours & {markers['but']} & {share:.2f} \\" in table("dissent:2", "--latex")
    text = BUILD.replace("seed = 5", "seed = 6")
    (built / "again.toml").write_text(text, encoding="utf-8")
    assert "not built yet: dataset dissent" in table("dissent:2", config="again.toml")
    text = BUILD.replace('datasets = ["dissent", "sp"]', 'datasets = ["sp"]')
    (built / "none.toml").write_text(text, encoding="utf-8")
    assert "skipped: no source for dataset dissent" in table("dissent:2", config="none.toml")


def test_a_confusion_matrix_is_printed_in_every_format(built: Path) -> None:
    result = built / "out" / "tiny" / "evaluations" / "held-out" / "words" / "results.json"
    matrix = json.loads(result.read_text())["metrics"]["confusion"]
    (name, given), *_ = rows_of("dissent:figure-5")["BiLSTM"]["confusions"].items()
    assert name == "BiLSTM" and given == matrix and any(map(sum, given["gold_by_predicted"]))
    counts = zip(matrix["classes"], matrix["gold_by_predicted"], strict=True)
    rows = [["gold", *matrix["classes"]], *([gold, *map(str, row)] for gold, row in counts)]
    lines = [line.split() for line in table("dissent:figure-5").splitlines()]
    start = lines.index(rows[0])
    assert lines[start : start + len(rows)] == rows and ["BiLSTM", "paper", "68"] in lines
    tabular = table("dissent:figure-5", "--latex").splitlines()
    assert all(rf"{' & '.join(row)} \\" in tabular for row in rows)


def test_a_row_without_a_number_says_why(built: Path) -> None:
    shown = table("discoeval:2")
    assert len(re.findall(r"published only", shown)) == 4
    assert "markers has no sweep of queue_size" in table("coherence:figure-2d")
    text = BUILD.replace('datasets = ["dissent", "sp"]', 'datasets = ["sp"]')
    (built / "less.toml").write_text(text, encoding="utf-8")
    shown = table("dissent:5", config="less.toml")
    assert "skipped: no source for model words" in shown
    other = BUILD.replace("max_steps = 2", "max_steps = 3")
    (built / "other.toml").write_text(other, encoding="utf-8")
    shown = table("dissent:5", config="other.toml")
    assert "not built yet: evaluation markers" in shown
    with options("other.toml", "out"):
        task = next(t for t in BuildAll(config="other.toml").lineage if t.title == "model markers")
        task.on_failure(ValueError("the disk is full\nand more"))
    shown = table("dissent:5", config="other.toml")
    assert "error: the disk is full, in model markers" in shown and "and more" not in shown
    listed = command("prune", "build.toml", "--output", "out")
    assert f"stages/model/markers/{task.hash}" in listed


def test_each_reason_is_given_once_for_all_stages_of_a_row(built: Path) -> None:
    (built / "seeds.toml").write_text(BUILD.replace("seed = 5", "seed = 6"), encoding="utf-8")
    state = "not built yet: 2 evaluations, held-out/words first"
    for more in ((), ("--latex",), ("--json",)):
        shown = table("dissent:5", *more, config="seeds.toml")
        assert shown.count(state) == 1 and shown.count("words.2") == 1  # the row of one seed


def test_the_report_of_an_unfinished_build_says_what_is_missing(built: Path) -> None:
    (built / "more.toml").write_text(
        BUILD.replace("max_steps = 2", "max_steps = 1").replace('"tiny"', '"more"'),
        encoding="utf-8",
    )
    page = Path(command("report", "more.toml", "--output", "out", "--to", "by-now").strip())
    section = page.with_name("report.md").read_text(encoding="utf-8")
    assert "| BERT | paper | 60.1 |" in section
    assert "not built yet: evaluation markers" in section and "Traceback" not in section


def test_the_report_has_the_tables(built: Path) -> None:
    report = (built / "out" / "tiny" / "report" / "report.md").read_text(encoding="utf-8")
    _, _, section = report.partition("## Tables of papers")
    section, _, _ = section.partition("## Models and baselines")
    assert section.count("### ") == 10 and "| Ngram-bow | paper | 28.1 |" in section
    assert "rows are gold labels" in section


NASTY = "R&D 100 % of a_b #1 $5 {x} ~ ^ \\ ±†–…λ"
TABLES = paper_tables()


def test_figure_3_and_table_7_are_explained_where_they_stand() -> None:
    for name, words in (("dissent:figure-3", "nearest gold pair"), ("dissent:7", "MVU: whether a")):
        paper = TABLES[name]
        lines = [Line(row, paper.printed(row), {}, "no model") for row in paper.rows]
        shown = [*blocks([Filled(paper, lines, ["a note"])])]
        assert isinstance(shown[1], Text) and words in shown[1].text
        assert isinstance(shown[2], Table)
        for form in (text, latex):
            printed = form(Filled(paper, lines, ["a note"]))
            assert printed.index(words) < printed.index("a note")


def test_latex_of_special_characters() -> None:
    assert latex_of(NASTY) == (
        r"R\&D 100 \% of a\_b \#1 \$5 \{x\} \textasciitilde{} \textasciicircum{} "
        r"\textbackslash{} $\pm$$\dagger$--\dots{}$\lambda$"
    )


@pytest.mark.parametrize("name", TABLES)
def test_latex_of_each_table_has_equal_rows_and_nothing_unescaped(name: str) -> None:
    paper = TABLES[name]
    cells = {column: Cell(1.0, (0.0, 2.0)) for column in paper.columns}
    lines = [Line(row, paper.printed(row), cells) for row in paper.rows]
    lines += [Line(NASTY, {}, cells), Line(NASTY, {}, {}, f"error: {NASTY}")]
    tabular = latex(Filled(paper, lines, [f"{NASTY}\n{NASTY}"]))
    body = [line for line in tabular.splitlines() if not line.startswith("%")]
    for line in (line for line in body if line.endswith(r" \\")):
        bare = re.sub(r"\\[&%$#_{}]|\$\\\w+\$", "", line.removesuffix(r" \\"))
        spans = [int(number) for number in re.findall(r"multicolumn\{(\d+)\}", bare)]
        assert bare.count("&") + 1 + sum(spans) - len(spans) == 2 + len(paper.columns), line
        assert not re.search(r"[%$#_~^]|\\(?!(text\w+|dots|multicolumn)\{)", bare), line
        assert bare.isascii() and bare.count("{") == bare.count("}"), line
    ends = (r"\hline", r"\end{tabular}", r" \\")
    assert body[0].startswith(r"\begin{tabular}") and all(line.endswith(ends) for line in body[1:])


def test_latex_of_a_table_compiles(built: Path, tmp_path: Path) -> None:
    tabular = table("dissent:5", "--latex")
    assert r"$\pm$" in tabular and "±" not in tabular
    if tex := shutil.which("pdflatex"):
        page = tmp_path / "page.tex"
        page.write_text(
            r"\documentclass{article}\begin{document}" + tabular + r"\end{document}",
            encoding="utf-8",
        )
        words = [tex, "-interaction=nonstopmode", "-halt-on-error", str(page)]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)


FIGURES = """
name = "figures"
[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["permuted"]
[[validation]]
name = "gold"
sources = ["stories"]
gold = "pdtb:{sample}/gold"
[datasets.permuted]
[models.full]
recipe = "coherence/full_tiny"
dataset = "permuted"
seeds = 2
settings = { queue_size = 20 }
sweep = { queue_size = [10, 20] }
[models.bert]
recipe = "pretrained"
settings = { backbone = "bert" }
[evaluations.wsj]
suite = "permuted"
models = ["full"]
dataset = "permuted"
[evaluations.single]
suite = "discoeval"
models = ["bert"]
data = "discoeval:x"
[evaluations.pairs]
suite = "discoeval"
models = ["bert"]
data = "discoeval:x"
[[tables]]
table = "coherence:figure-2d"
rows = { "Full Model" = ["full"] }
[[tables]]
table = "coherence:figure-2a"
rows = { "Full Model, hard negatives" = ["full"] }
[[tables]]
table = "dissent:figure-2"
rows = { "Error rate" = "gold" }
[[tables]]
table = "conpono:1"
rows = { BERT-Base = ["bert"] }
more = { "BERT, in pairs" = ["bert@pairs"] }
"""


def made(folder: Path, stage: str, key: str, name: str, content: dict[str, Any]) -> Made:
    """A finished stage with one result."""
    place = folder / stage / key
    place.mkdir(parents=True)
    (place / "manifest.json").write_text("{}")
    (place / name).write_text(json.dumps(content))
    return Made(stage, key, place)


def accuracy(value: float) -> dict[str, Any]:
    figures = {"accuracy": {"value": value, "ci": [value - 0.1, value + 0.1]}, "pairs": 9}
    return {"suite": "permuted", "metrics": figures, "dataset": {"config": "pairwise"}}


def discoeval(protocol: str, value: float) -> dict[str, Any]:
    figure = {"value": value, "ci": [0, 1]}
    metrics = {"tasks": {"SP": {**figure, "domains": {"wiki": figure}}}}
    metrics["average"] = {"complete": False}
    return {
        "suite": "discoeval",
        "metrics": metrics,
        "dataset": [],
        "protocol": {"protocol": protocol, "seeds": 1},
    }


def test_the_filters_of_a_validation_are_part_of_its_hash(tmp_path: Path) -> None:
    text = FIGURES.partition("[datasets.permuted]")[0].replace('datasets = ["permuted"]\n', "")
    plain = hashes(tmp_path / "a.toml", text)["validation gold"]
    filtered = hashes(tmp_path / "b.toml", f'{text}filters = "dissent"\n')["validation gold"]
    assert plain != filtered
    with pytest.raises(ConfigError, match=r"(?s)c\.toml:10: .*filters.*'disent'.*dissent"):
        hashes(tmp_path / "c.toml", f'{text}filters = "disent"\n')


def test_figures_and_protocols_are_filled_from_the_results(tmp_path: Path) -> None:
    (tmp_path / "build.toml").write_text(FIGURES, encoding="utf-8")
    validations = [{"step": 1, "accuracy": 0.5}, {"step": 2, "accuracy": 0.75}]
    shares = {"because": 0.25, "so": 0.5, "then": 0.0}
    rates = {marker: {"error_rate": share} for marker, share in shares.items()}
    stages = [
        made(tmp_path, "evaluation", f"wsj/{name}", "results.json", accuracy(value))
        for name, value in {"full": 0.6, "full.2": 0.8, "full.queue_size-10": 0.5}.items()
    ]
    for name, protocol, value in (("single", "single", 0.3), ("pairs", "pairs", 0.4)):
        content = discoeval(protocol, value)
        stages.append(made(tmp_path, "evaluation", f"{name}/bert", "results.json", content))
    training = {"training": {"validations": validations}}
    stages.append(made(tmp_path, "model", "full", "results.json", training))
    stages.append(made(tmp_path, "model", "full.2", "results.json", training))
    paper = {"criterion_paper": {"per_marker": rates}}
    stages.append(made(tmp_path, "validation", "gold", "validation.json", {"paper": paper}))
    build = load_build(str(tmp_path / "build.toml"))
    queue, progress, rate, scores = filled(build, stages)

    lines = {line.name: line for line in queue.lines}
    assert [*lines] == ["10", "20"]
    assert lines["20"].measured["WSJ"].figure == "70.0 ± 14.1"
    assert lines["10"].measured["WSJ"].figure == "50.0 [40.0, 60.0]"
    assert "10: not built yet: evaluation wsj/full.queue_size-10.2." in queue.notes
    (line,) = (line for line in progress.lines if line.curves)
    assert line.curves == {"Full Model, hard negatives": [(1, 0.5), (2, 0.75)]}
    assert "75.0 at step 2" in text(progress)
    line = rate.lines[0]
    assert line.measured["so"].value == 0.5 and line.printed["so"] == 0.242
    ours = as_json(rate)["rows"][0]["ours"]
    assert {marker: cell["value"] for marker, cell in ours.items()} == shares  # 0 is measured, too
    by_name = {line.name: line for line in scores.lines}
    assert by_name["BERT-Base"].measured["SP"].value == 30
    assert by_name["BERT, in pairs"].measured["SP"].value == 40
    drawings = [block for block in blocks([queue, progress, rate]) if isinstance(block, Figure)]
    names = [block.name for block in drawings]
    assert names == [
        "paper-coherence-figure-2d",
        "paper-coherence-figure-2a",
        "paper-dissent-figure-2-paper-1",
        "paper-dissent-figure-2-ours-1",
    ]
    assert all("<svg" in drawing.svg for drawing in drawings)
