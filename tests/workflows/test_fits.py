"""What does not fit in a build file is refused when it is planned, with its key and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from corpora.errors import DiscorporaError
from extract.confidence import DEFAULT_THRESHOLD
from workflows.cli.show import plan as show_plan
from workflows.config import load_build
from workflows.settings import options
from workflows.tasks import BuildAll, Dataset, Evaluate

BUILD = """
name = "fits"
threads = 1

[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["dissent", "permuted", "intrusion", "conpono", "sp"]

[datasets.dissent]
markers = ["and", "but"]
[datasets.permuted]
[datasets.intrusion]
[datasets.conpono]
[datasets.sp]

[models.markers]
recipe = "dissent/bilstm_tiny"
dataset = "dissent"
config = "all"
suite = "dissent"

[models.scorer]
recipe = "coherence/contrastive_tiny"
dataset = "permuted"

[evaluations.intruders]
suite = "pairwise"
models = ["scorer"]
dataset = "intrusion"

[evaluations.probes]
suite = "discoeval"
models = ["markers", "scorer"]
dataset = ["sp"]
"""

BOOKS5 = 'dissent/bilstm_books5"\ndataset = "dissent"\nsettings = { vectors = "glove.txt" }'

MISFITS = {
    "a recipe on data of another task": (
        ('dataset = "dissent"\nconfig = "all"', 'dataset = "conpono"'),
        ("models.markers.dataset", "cannot read 'conpono'", "it reads s1, s2, label", "dissent"),
    ),
    "a recipe on another configuration": (
        ('dataset = "permuted"', 'dataset = "intrusion"\nconfig = "detection"'),
        ("models.scorer.config", "'intrusion@detection'", 'set config = "pairwise"'),
    ),
    "a configuration that the recipe chooses and the dataset has not": (
        ('dissent/bilstm_tiny"\ndataset = "dissent"\nconfig = "all"', BOOKS5),
        ("models.markers.config", "'books5'", "name one that it has: all"),
    ),
    "a suite for other models": (
        ('suite = "dissent"', 'suite = "permuted"'),
        ("models.markers.suite", "scores a text", "suites for this model: dissent"),
    ),
    "labels of another language than the markers": (
        ("threads = 1", 'threads = 1\n[extract]\nmarkers = "because,when"'),
        ("datasets.dissent.markers", "none of the markers", "and, but", "gives because, when"),
    ),
    "an evaluation of another kind of model": (
        ('models = ["scorer"]', 'models = ["scorer", "markers"]'),
        ("evaluations.intruders.models", "'markers'", "discoeval"),
    ),
    "an evaluation on other data": (
        ('dataset = "intrusion"\n\n[eval', 'dataset = "intrusion@detection"\n\n[eval'),
        ("evaluations.intruders.dataset", "'intrusion@detection'", '"intrusion@pairwise"'),
    ),
    "an evaluation on data of another task": (
        ('dataset = ["sp"]', 'dataset = ["sp", "conpono"]'),
        ("evaluations.probes.dataset", "cannot read 'conpono'"),
    ),
    "several datasets for a suite of one": (
        ('dataset = "intrusion"\n\n[eval', 'dataset = ["intrusion"]\n\n[eval'),
        ("evaluations.intruders.dataset", "takes one dataset"),
    ),
    "a base without a backbone": (
        ('dataset = "permuted"', 'dataset = "permuted"\nbase = "markers"'),
        ("models.scorer.base", "'markers'", "no backbone"),
    ),
    "nothing to train on": (
        ("threads = 1", "threads = 1\n[splits]\ntrain = 0\nvalidation = 0.5\ntest = 0.5"),
        ("models.", ".dataset", "needs the split 'train'", "splits.train = 0"),
    ),
    "nothing to train on in one dataset": (
        ("[datasets.dissent]", "[datasets.dissent]\ntrain = 0"),
        ("datasets.dissent",),
    ),
    "nothing to judge by": (
        ("threads = 1", "threads = 1\n[splits]\ntrain = 0.8\nvalidation = 0.2\ntest = 0"),
        ("'test'", "splits.test = 0"),
    ),
    "gold trees of plain text": (
        ("threads = 1", 'threads = 1\n[parse]\nparser = "gold"'),
        ("parse.parser", "'gold'", "source 'stories' (sample:) has none", "conllu:"),
    ),
    "an unknown parser": (
        ("threads = 1", 'threads = 1\n[parse]\nparser = "spacey"'),
        ("parse.parser", "unknown parser 'spacey'"),
    ),
    "gold trees of plain text, for a validation": (
        (
            "[datasets.dissent]",
            '[[validation]]\nname = "v"\nsources = ["stories"]\ngold = "pdtb:{sample}/gold"\n'
            'parser = "gold"\n[datasets.dissent]',
        ),
        ("validation v: parser", "'gold'"),
    ),
    "a name of a language": (
        ('name = "stories"', 'name = "stories"\nlanguage = "english"'),
        ("source stories: language", "'english' is not a language code", 'write "en"'),
    ),
    "no code of a language": (
        ('name = "stories"', 'name = "stories"\nlanguage = "e"'),
        ("source stories: language", "'e' is not a language code", '"pt-BR"'),
    ),
    "an unknown kind of source": (
        ("sample:stories", "smple:stories"),
        ("source stories: spec", "did you mean 'sample'"),
    ),
    "an unknown recipe": (
        ("dissent/bilstm_tiny", "dissent/bilstm_tny"),
        ("models.markers.recipe", "did you mean 'dissent/bilstm_tiny'"),
    ),
    "an unknown builder": (
        ("[datasets.sp]", '[datasets.sp]\nbuilder = "spp"'),
        ("datasets.sp.builder", "did you mean 'sp'"),
    ),
    "an unknown suite": (
        ('suite = "pairwise"', 'suite = "pairwse"'),
        ("evaluations.intruders.suite", "did you mean 'pairwise'"),
    ),
    "an unknown marker": (
        ("threads = 1", 'threads = 1\n[extract]\nmarkers = "wheras"'),
        ("extract.markers", "'wheras'"),
    ),
    "an unknown key of a source": (
        ('name = "stories"', 'name = "stories"\nlisence = "CC0-1.0"'),
        ("source stories: unknown key 'lisence'", "did you mean 'licence'"),
    ),
    "a source whose name is none": (
        ('name = "stories"', 'name = "Stories"'),
        ("source Stories: name: 'Stories' cannot be a name", "small letters"),
    ),
    "a source without a name": (
        ('name = "stories"\n', ""),
        ("[[sources]] number 1", "'name' is missing"),
    ),
    "an unknown key of a dataset without a source": (
        ("[datasets.dissent]", "[datasets.ssp]\ntrian = 3\n[datasets.dissent]"),
        ("datasets.ssp: unknown key 'trian'", "did you mean 'train'"),
    ),
    "a setting of a recipe beside its keys": (
        ('suite = "dissent"', 'suite = "dissent"\nepochs = 2'),
        ("models.markers: unknown key 'epochs'", "settings = { epochs = 2 }"),
    ),
    "two validations of one name": (
        (
            "[datasets.dissent]",
            '[[validation]]\nname = "v"\nsources = ["stories"]\ngold = "pdtb:x"\n' * 2
            + "[datasets.dissent]",
        ),
        ("validation v: name", "two [[validation]] tables are named 'v'"),
    ),
    "a source named as the gold relations of a validation": (
        (
            "[datasets.dissent]",
            '[[sources]]\nname = "v-gold"\nspec = "sample:news"\n'
            '[[validation]]\nname = "v"\nsources = ["stories"]\ngold = "pdtb:x"\n'
            "[datasets.dissent]",
        ),
        ("validation v: name", "recorded as 'v-gold'", "rename one"),
    ),
    "a source named as the data of an evaluation": (
        (
            'dataset = "intrusion"\n\n[eval',
            'data = "jsonl:x.jsonl"\n[[sources]]\nname = "intruders-data"\n'
            'spec = "sample:news"\n[eval',
        ),
        ("evaluations.intruders", "recorded as 'intruders-data'"),
    ),
    "a limit of no evaluation": (
        ('suite = "dissent"', "limit = 5"),
        ("models.markers: limit = 5: without a suite nothing is evaluated",),
    ),
    "a build named as a folder of its output": (
        ('name = "fits"', 'name = "stages"'),
        ("name: 'stages' cannot be the name of a build", "stages and fingerprints"),
    ),
    "a parser of another language": (
        ("threads = 1", 'threads = 1\n[parse]\nparser = "stanza:es"'),
        ("source stories", "'stanza:es' is for texts in 'es'", "these are in 'en'"),
    ),
    "an unknown key of a table": (
        ("threads = 1", "threads = 1\n[extract]\nmakers = 'all15'"),
        ("unknown key 'extract.makers'", "did you mean 'markers'"),
    ),
    "a value of a wrong type": (
        ("threads = 1", 'threads = 1\nseed = "five"'),
        ("seed", "five"),
    ),
    "a seed below 0": (("threads = 1", "threads = 1\nseed = -1"), ("seed = -1",)),
    "an unknown engine": (
        ("threads = 1", 'threads = 1\n[engine]\nkind = "slrum"'),
        ("engine.kind = 'slrum'",),
    ),
    "an engine without workers": (
        ("threads = 1", 'threads = 1\n[engine]\nkind = "local"\nworkers = 0'),
        ("engine.workers = 0",),
    ),
    "a dataset that no table names": (
        ('"conpono", "sp"]', '"conpono", "spp"]'),
        ("source stories", "'spp'", "did you mean 'sp'"),
    ),
    "a splitter that splits nothing": (
        (
            "[datasets.dissent]",
            '[[sources]]\nname = "cloze"\nspec = "storycloze:{sample}/tests/storycloze.csv"\n'
            'datasets = ["coherence_tests"]\nsplitter = "lines"\n[datasets.coherence_tests]\n'
            "[datasets.dissent]",
        ),
        ("source cloze", "splitter = 'lines' changes nothing", "coherence_tests"),
    ),
    "a table of splits that is not there": (
        (
            '"sp"]\n\n[datasets.dissent]',
            '"sp", "rst"]\n[datasets.rst]\ntable = "nope.tsv"\n[datasets.dissent]',
        ),
        ("datasets.rst: table: nope.tsv: no table of splits", "SPLIT<TAB>DOCUMENT"),
    ),
    "a plug-in without a class": (
        ("[datasets.sp]", '[datasets.sp]\nbuilder = "mine.py"'),
        ("datasets.sp.builder: 'mine.py' names no class", "write mine.py:Class"),
    ),
    "a licence that is not in the table": (
        ('name = "stories"', 'name = "stories"\nlicence = "CC-BY-5.0"'),
        ("source stories: licence", "no licence 'CC-BY-5.0'", "did you mean"),
    ),
    "a licence of a genre that is not in the table": (
        ('name = "stories"', 'name = "stories"\nlicence = { letters = "CC-BY-5.0" }'),
        ("source stories: licence.letters", "no licence 'CC-BY-5.0'"),
    ),
    "a value of a model that its recipe refuses": (
        ('suite = "dissent"', 'suite = "dissent"\nsettings = { batch_size = "many" }'),
        ("models.markers.settings: batch_size = 'many'",),
    ),
    "an unknown setting of a suite": (
        ('suite = "pairwise"', 'suite = "pairwise"\nsettings = { limt = 5 }'),
        ("evaluations.intruders.settings: unknown key 'limt'",),
    ),
    "a language that the parser does not know": (
        ('name = "stories"', 'name = "stories"\nlanguage = "es"'),
        ("parses English only, not 'es'",),
    ),
    "a source of a validation": (
        (
            "[datasets.dissent]",
            '[[validation]]\nname = "v"\nsources = ["storys"]\ngold = "pdtb:x"\n[datasets.dissent]',
        ),
        ("validation v: sources", "no source 'storys'", "did you mean 'stories'"),
    ),
}


def plan(config: Path, output: Path) -> None:
    with options(str(config), str(output), looking=True):
        BuildAll(config=str(config))


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_refused_when_it_is_planned(
    case: str, write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    change, words = MISFITS[case]
    text = BUILD.replace(*change)
    assert text != BUILD
    with pytest.raises(DiscorporaError) as error:
        plan(write_config(text), tmp_path / "out")
    said = str(error.value)
    assert re.match(rf"{tmp_path}/build\.toml:\d+: ", said) and said.count("build.toml") == 1
    for word in words:
        assert word in said, f"{word!r} is not in: {said}"


@pytest.mark.parametrize(
    ("written", "least"),
    [
        ("", DEFAULT_THRESHOLD),
        ('mode = "recall"', 0.0),
        ("min_confidence = 0.7", 0.7),
        ("min_confidence = 0", 0),
    ],
)
def test_a_dataset_states_the_threshold_that_its_pairs_passed(
    written: str, least: float, write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    text = BUILD.replace("threads = 1", f"threads = 1\n[extract]\n{written}")
    config = str(write_config(text))
    with options(config, str(tmp_path / "out"), looking=True):
        dataset = Dataset(config=config, name="dissent")
        assert dataset.record().extraction["minimum confidence"] == least


def test_planning_writes_nothing(write_config: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "novels"
    folder.mkdir()
    (folder / "one.txt").write_text("It rained all day.\n", encoding="utf-8")
    config = write_config(BUILD.replace("sample:stories", f"text:{folder}"))
    show_plan(str(config), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("parser", "how"), [("stanza:en", "stanza"), ("spacy:xx_no", "xx_no")])
def test_a_parser_that_is_not_installed_is_missing_like_a_source(
    parser: str,
    how: str,
    write_config: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path / "none"))
    text = BUILD.replace("threads = 1", f'threads = 1\n[parse]\nparser = "{parser}"')
    config, output = str(write_config(text)), str(tmp_path / "out")
    with pytest.raises(typer.Exit) as left:
        show_plan(config, output)
    shown = capsys.readouterr().out
    assert left.value.exit_code == 1
    assert f"parser {parser}: " in shown and "waits for missing" in shown
    with options(config, output), pytest.raises(DiscorporaError) as error:
        BuildAll(config=config)
    assert f"parser {parser}: {config}:" in str(error.value)
    assert "parse.parser: " in str(error.value) and how in error.value.hint


def test_a_model_without_its_vectors_is_refused_before_anything_runs(
    write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    settings = 'config = "all"\nsettings = { vectors = "nowhere.txt" }\nget = "the page"'
    config = str(write_config(BUILD.replace('config = "all"', settings)))
    with options(config, str(tmp_path / "out")), pytest.raises(DiscorporaError) as error:
        BuildAll(config=config)
    said = str(error.value)
    assert "vectors nowhere.txt: " in said and "no such file" in said
    assert "the page" in error.value.hint and not (tmp_path / "out" / "stages").exists()


OPTIONS = {
    "text": ("layout = 'foo'", "document_lines = 'many'", "document_lines = 5", "layuot = 3"),
    "jsonl": ("layout = 'documents'", "text = 3", "layout = 'document', document_lines = 5"),
    "irc": ("system = 'often'", "context = -1", "context = true"),
    "rst": ("text = 'tree_text'", "encoding = 'utf-9'"),
    "coherence": ("set = 'lmvl'",),
}


@pytest.mark.parametrize(
    ("kind", "written"), [(kind, each) for kind, all in OPTIONS.items() for each in all]
)
def test_a_value_that_a_reader_refuses_is_refused_before_it_reads(
    kind: str, written: str, write_config: Callable[[str], Path]
) -> None:
    given = f'"{kind}:somewhere"\noptions = {{ {written} }}'
    text = BUILD.replace('"sample:stories"', given).replace('"dissent", ', "")
    with pytest.raises(DiscorporaError, match="source stories: options: "):
        load_build(str(write_config(text)))


def test_values_that_a_reader_takes_are_taken(write_config: Callable[[str], Path]) -> None:
    good = {"text": "layout = 'lines', document_lines = 5", "irc": "system = true, context = 0"}
    for kind, written in good.items():
        given = f'"{kind}:somewhere"\noptions = {{ {written} }}'
        load_build(str(write_config(BUILD.replace('"sample:stories"', given))))


FOLLOWS = '''"""A builder whose columns are those of BSO."""

from corpora.tasks.discoeval.order import Bso


class Follows(Bso):
    """Pairs that happen to have the columns of BSO."""

    name = "follows"
'''


def test_discoeval_takes_no_pairs_of_another_builder(
    write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "follows.py").write_text(FOLLOWS, encoding="utf-8")
    text = BUILD.replace("[datasets.sp]", '[datasets.sp]\nbuilder = "follows.py:Follows"')
    with pytest.raises(DiscorporaError, match="no task for 'sp', of the builder 'follows'"):
        plan(write_config(text), tmp_path / "out")


MINE = '''"""A suite of one's own."""

from zoo.declared import SCORES, Form, Suite


class Mine(Suite):
    """It reads the pairs."""

    needs = frozenset({SCORES})
    reads = (Form(("pos", "neg")),)
    all_configs = True

    depth: int = 3
    """How deep it looks."""
'''


OWN = BUILD.replace('suite = "pairwise"', 'suite = "mine.py:Mine"\nsettings = { depth = 5 }')


def test_a_suite_in_a_file_beside_the_build_file(
    write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    plan(write_config(OWN), tmp_path / "out")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("depth = 5", 'depth = "deep"', "depth = 'deep': expected a whole number"),
        ("depth = 5", "depth = true", "depth = 'True': expected a whole number"),
        ("depth = 5", "dept = 5", "unknown key 'dept'; did you mean 'depth'"),
        ('models = ["scorer"]', 'models = ["markers"]', "needs a model that scores a text"),
        ('dataset = "intrusion"\n\n[eval', 'dataset = "conpono"\n\n[eval', "cannot read 'conpono'"),
        ("mine.py:Mine", "mine.py:Minor", "mine.py has no class 'Minor'"),
    ],
)
def test_what_a_suite_in_a_file_cannot_use_is_refused(
    write_config: Callable[[str], Path], tmp_path: Path, old: str, new: str, message: str
) -> None:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    with pytest.raises(DiscorporaError) as error:
        plan(write_config(OWN.replace(old, new)), tmp_path / "out")
    assert message in str(error.value) and "evaluations.intruders" in str(error.value)


def test_the_build_file_of_a_dataset_has_no_path_of_this_machine(
    write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "follows.py").write_text(FOLLOWS, encoding="utf-8")
    (tmp_path / "own.toml").write_text('[sets]\nown = ["because"]\n', encoding="utf-8")
    text = BUILD.partition("[models.")[0].replace(
        "[datasets.sp]", f'[datasets.sp]\nbuilder = "{tmp_path}/follows.py:Follows"'
    )
    text = text.replace(
        "threads = 1", f'threads = 1\n[extract]\npatterns = ["{tmp_path}/own.toml"]'
    )
    config = str(write_config(text))
    with options(config, str(tmp_path / "out"), looking=True):
        written = Dataset(config=config, name="dissent").build_file()
    assert (
        'patterns = ["{data}/own.toml"]' in written and 'builder = "follows.py:Follows"' in written
    )
    assert str(tmp_path) not in written


def test_the_data_of_an_evaluation_need_no_kind(
    write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text("{}", encoding="utf-8")
    for data in (path, f"jsonl:{path}"):
        text = BUILD.replace('dataset = "intrusion"\n\n[eval', f'data = "{data}"\n\n[eval')
        config = str(write_config(text))
        with options(config, str(tmp_path / "out"), looking=True):
            task = Evaluate(config=config, name="scorer", on="intruders")
            assert task.data_path(tmp_path / "shelf") == str(path)
