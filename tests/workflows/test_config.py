"""Build files: what is read, what is refused, what a hash depends on."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corpora.errors import ConfigError
from corpora.readers import open_source
from corpora.toml import TomlFile, toml_value
from tests.workflows.conftest import TINY
from workflows import config as configs
from workflows import tasks
from workflows.config import load_build
from workflows.settings import options
from workflows.tables import BuildFile
from workflows.tasks import BuildAll


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Callable[[Path], dict[str, str]]]:
    """A function from a build file to the hashes of its stages, by title."""

    def hashes(config: Path) -> dict[str, str]:
        configs._load.cache_clear()  # as a new process sees the file
        with options(str(config), str(tmp_path / "out"), looking=True):
            return {task.title: task.hash for task in BuildAll(config=str(config)).lineage}

    return hashes


@pytest.fixture
def write_novel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that writes a novel below `tmp_path`, the data folder."""
    monkeypatch.setenv("DISCORPORA_DATA", str(tmp_path))

    def write(name: str, words: str = "It rained.") -> None:
        path = tmp_path / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{words}\n", encoding="utf-8")

    return write


GLOB = """
name = "glob"
[[sources]]
name = "novels"
spec = "text:{data}/novels/*.txt"
datasets = ["sp"]
[datasets.sp]
"""


@pytest.mark.parametrize("name", ["sample", "open", "full"])
def test_the_shipped_build_files_are_valid(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, graph: Callable
) -> None:
    monkeypatch.setenv("DISCORPORA_DATA", str(tmp_path))
    titles = graph(Path(name))
    assert f"report {name}" in titles
    assert any(title.startswith("model coherence") for title in titles)


def test_the_build_file_of_discoevals_rows_is_valid(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, graph: Callable
) -> None:
    monkeypatch.setenv("DISCORPORA_DATA", str(tmp_path))
    titles = graph(Path("discoeval_rows"))
    assert {"dataset dissent", "dataset criteria", "dataset conpono"} <= {*titles}


@pytest.mark.parametrize("name", ["sample", "sample.toml", "workflows/configs/sample.toml"])
def test_a_shipped_build_file_is_found_from_any_folder(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_build(name).name == "sample"


def test_a_glob_is_one_source_a_file(
    write_novel: Callable, write_config: Callable[[str], Path]
) -> None:
    for name in ("one", "two"):
        write_novel(f"novels/{name}")
    build = load_build(str(write_config(GLOB)))
    assert [source.name for source in build.sources] == ["novels-one", "novels-two"]


DEEP = GLOB.replace("/novels/*.txt", "/novels/*/*.txt")


def test_files_of_one_name_in_several_folders_are_told_apart(
    write_novel: Callable, write_config: Callable[[str], Path]
) -> None:
    for folder in ("emma", "Of Mice"):
        write_novel(f"novels/{folder}/01")
    files = load_build(str(write_config(DEEP))).sources
    assert [source.name for source in files] == ["novels-of-mice-01", "novels-emma-01"]
    assert [d.id for s in files for d in open_source(s.spec)] == ["Of Mice/01", "emma/01"]
    # A glob of folders, and one with its own mark.
    folders = _load_again(write_config(GLOB.replace("/*.txt", "/*"))).sources
    assert [source.name for source in folders] == ["novels-of-mice", "novels-emma"]
    assert [d.id for s in folders for d in open_source(s.spec)] == ["Of Mice/01", "emma/01"]
    marked = GLOB.replace("/novels/*.txt", "/./novels/emma/*.txt")
    (one,) = _load_again(write_config(marked)).sources
    assert one.name == "novels-novels-emma-01"
    assert [d.id for d in open_source(one.spec)] == ["novels/emma/01"]


@pytest.mark.parametrize("place", ["*/*", "~/*/*", "~/./*/*"])
def test_relative_globs_name_their_sources_alike(
    write_novel: Callable,
    write_config: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    place: str,
) -> None:
    write_novel("emma/01")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (one,) = load_build(str(write_config(GLOB.replace("{data}/novels/*", place)))).sources
    assert one.name == "novels-emma-01"
    assert [d.id for d in open_source(one.spec)] == ["emma/01"]


def test_a_glob_of_files_in_one_folder_keeps_names_ids_and_hashes(
    write_novel: Callable, write_config: Callable[[str], Path], tmp_path: Path, graph: Callable
) -> None:
    write_novel("novels/one")
    config = write_config(GLOB)
    (source,) = load_build(str(config)).sources
    assert source.spec == f"text:{tmp_path}/novels/one.txt"
    assert [d.id for d in open_source(source.spec)] == ["one"]
    # The same as of the file named by itself, as it was before globs knew of folders.
    alone = GLOB.replace('"novels"', '"novels-one"').replace("*.txt", "one.txt")
    key = "documents novels-one"
    assert graph(config)[key] == graph(write_config(alone))[key]


def test_a_file_that_moves_to_another_folder_is_another_source(
    write_novel: Callable, write_config: Callable[[str], Path], tmp_path: Path, graph: Callable
) -> None:
    write_novel("novels/a-b/c")
    before = graph(write_config(DEEP))
    (tmp_path / "novels" / "a-b").rename(tmp_path / "novels" / "A B")
    after = graph(write_config(DEEP))
    assert before["documents novels-a-b-c"] != after["documents novels-a-b-c"]


def test_sources_of_one_name_are_both_shown(
    write_novel: Callable, write_config: Callable[[str], Path]
) -> None:
    for name in ("one.en", "one.nl"):
        write_novel(f"novels/{name}")
    with pytest.raises(ConfigError, match=r"'novels-one': .*one\.en\.txt and .*one\.nl\.txt\n"):
        load_build(str(write_config(GLOB)))


def test_a_glob_takes_no_hidden_file_and_no_pattern_from_the_data_folder(
    write_novel: Callable,
    write_config: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    data = tmp_path / "dat [old]"
    for name in ("emma", "._emma"):
        write_novel(f"dat [old]/novels/{name}")
    monkeypatch.setenv("DISCORPORA_DATA", str(data))
    (one,) = load_build(str(write_config(GLOB))).sources
    assert one.name == "novels-emma"
    assert [document.id for document in open_source(one.spec)] == ["emma"]


def test_a_folder_with_brackets_is_one_source(
    write_novel: Callable, write_config: Callable[[str], Path]
) -> None:
    for name in ("emma [1]", "emma 1"):
        write_novel(f"{name}/{name}")
    config = write_config(GLOB.replace("/novels/*.txt", "/emma [1]"))
    (one,) = load_build(str(config)).sources
    assert [document.id for document in open_source(one.spec)] == ["emma [1]"]


def _load_again(config: Path) -> BuildFile:
    configs._load.cache_clear()
    return load_build(str(config))


def test_an_added_novel_leaves_the_stages_of_the_others_alone(
    write_novel: Callable, write_config: Callable[[str], Path], graph: Callable
) -> None:
    config = write_config(GLOB)
    write_novel("novels/one")
    before = graph(config)
    write_novel("novels/two")
    after = graph(config)
    assert after["sentences novels-one"] == before["sentences novels-one"]
    assert after["dataset sp"] != before["dataset sp"]


def test_a_changed_source_changes_what_depends_on_it(
    write_novel: Callable, write_config: Callable[[str], Path], graph: Callable
) -> None:
    for name in ("one", "two"):
        write_novel(f"novels/{name}")
    config = write_config(GLOB)
    before = graph(config)
    write_novel("novels/one", "It rained all day.")
    after = graph(config)
    changed = {title for title in after if after[title] != before[title]}
    assert {"documents novels-one", "sentences novels-one", "dataset sp"} <= changed
    assert "documents novels-two" not in changed


@pytest.mark.parametrize(
    ("change", "same", "other"),
    [
        (("seed = 5", "seed = 6"), "pairs stories/embedded-recall", "dataset sp"),
        (("[datasets.sp]", "[datasets.sp]\nmin_words = 4"), "dataset bso", "dataset sp"),
        (
            ("[datasets.sp]", "[extract]\nmarkers = 'books5'\n[datasets.sp]"),
            "dataset sp",
            "dataset dissent",
        ),
        (
            ("[datasets.sp]", "[sentences]\nsplitter = 'lines'\n[datasets.sp]"),
            "documents news",
            "sentences news",
        ),
    ],
)
def test_a_setting_changes_only_what_depends_on_it(
    change: tuple[str, str], same: str, other: str, tmp_path: Path, graph: Callable
) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(TINY, encoding="utf-8")
    two.write_text(TINY.replace(*change), encoding="utf-8")
    before, after = graph(one), graph(two)
    assert before[same] == after[same]
    assert before[other] != after[other]


def test_the_title_of_a_dataset_is_for_its_card_alone(tmp_path: Path, graph: Callable) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    said = '[datasets.sp]\ntitle = "Harbours"\ndescription = "Passages of logs."'
    one.write_text(TINY, encoding="utf-8")
    two.write_text(TINY.replace("[datasets.sp]", said), encoding="utf-8")
    before, after = graph(one), graph(two)
    changed = {name for name in before if before[name] != after.get(name)}
    assert "dataset sp" in changed and not any("dissent" in name for name in changed)


def test_the_contact_of_a_publisher_is_an_address(tmp_path: Path) -> None:
    config = tmp_path / "one.toml"
    for contact in ("ada@example.org", "https://example.org/ada"):
        config.write_text(f'{TINY}\n[publisher]\ncontact = "{contact}"\n', encoding="utf-8")
        assert load_build(str(config)).publisher.contact == contact
    config.write_text(TINY + '\n[publisher]\ncontact = "Ada"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="expected a mail address, or a URL"):
        load_build(str(config))


def test_parses_depend_on_the_markers_and_their_table(
    tmp_path: Path, graph: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    parses = "parse stories/embedded"
    found = []
    for markers in ("books5", "and,but,because,if,when"):
        config = tmp_path / f"{len(found)}.toml"
        change = f"[extract]\nmarkers = '{markers}'\n[datasets.sp]"
        config.write_text(TINY.replace("[datasets.sp]", change), encoding="utf-8")
        found.append(graph(config)[parses])
    assert found[0] == found[1]
    monkeypatch.setattr("workflows.tasks.sources.patterns_hash", lambda *_: "other")
    assert graph(config)[parses] != found[1]


def test_parses_depend_on_the_contents_of_pattern_files(tmp_path: Path, graph: Callable) -> None:
    row = "[[pattern]]\nid = 'x'\nmarker = 'whereas'\ndeprels = ['mark']\ncomment = 'c'\n"
    hashes = []
    for name, example in (("a", "one"), ("b", "one"), ("c", "two")):
        (tmp_path / name).mkdir()
        patterns = tmp_path / name / "mine.toml"
        patterns.write_text(f"{row}example = '{example}'\n", encoding="utf-8")
        change = f"[extract]\nmarkers = 'all15,whereas'\npatterns = ['{patterns}']\n[datasets.sp]"
        config = tmp_path / f"{name}.toml"
        config.write_text(TINY.replace("[datasets.sp]", change), encoding="utf-8")
        hashes.append(graph(config)["parse stories/embedded"])
    assert hashes[0] == hashes[1] != hashes[2]


def test_two_pattern_files_of_one_name_are_refused(
    write_config: Callable[[str], Path], graph: Callable
) -> None:
    patterns = "[extract]\npatterns = ['a/mine.toml', 'b/mine.toml']\n[datasets.sp]"
    config = write_config(TINY.replace("[datasets.sp]", patterns))
    with pytest.raises(ConfigError, match=r"\.toml:\d+: extract\.patterns: .*'mine\.toml'\n"):
        graph(config)


def test_a_data_folder_is_asked_for(
    write_config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISCORPORA_DATA", raising=False)
    with pytest.raises(ConfigError, match="DISCORPORA_DATA"):
        load_build(str(write_config(GLOB)))


def test_a_build_without_a_source_for_a_dataset_says_so(
    write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    config = str(write_config(TINY + "[datasets.ssp]\n"))
    with options(config, str(tmp_path / "out")):
        assert "dataset ssp" in BuildAll(config=config).build.skipped


CHAIN = (
    TINY
    + """
[models.first]
recipe = "dissent/transformer_tiny"
dataset = "dissent"
config = "all"

[models.second]
recipe = "coherence/contrastive_tiny"
dataset = "permuted"
config = "contrastive"
base = "first"

[evaluations.elsewhere]
suite = "permuted"
models = ["second"]
dataset = "permuted@pairwise"
"""
)


def test_a_model_depends_on_the_model_that_it_starts_from(
    write_config: Callable[[str], Path], graph: Callable, tmp_path: Path
) -> None:
    first = 'config = "all"\n\n[models.second]'
    other = tmp_path / "other.toml"
    other.write_text(CHAIN.replace(first, first.replace("all", "books5")), encoding="utf-8")
    before, after = graph(write_config(CHAIN)), graph(other)
    differ = {title for title in before if before[title] != after[title]}
    assert differ == {
        "model first",
        "model second",
        "evaluation elsewhere/second",
        "report tiny",
        "all tiny",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('base = "first"', 'base = "frist"', "did you mean 'first'"),
        ('base = "first"', 'base = "second"', "form a circle: second -> second"),
        ('models = ["second"]', 'models = ["third"]', "no model 'third'"),
        ('dataset = "permuted@pairwise"', 'dataset = "permutd"', "did you mean 'permuted'"),
        ('dataset = "permuted@pairwise"', "", "names no data"),
        ('"permuted@pairwise"', '"permuted@pairwise"\ndata = "discoeval:x"', "both a dataset and"),
        ("permuted@pairwise", "permuted@pairwse", "did you mean 'pairwise'"),
        ('"permuted@pairwise"', '["permuted@pairwise"]', "lists .* with a configuration"),
        ('"permuted@pairwise"', '["bso", "bso"]', "lists 'bso' twice"),
        (
            'config = "contrastive"',
            'config = "default"',
            "models.second.config: .*no configuration 'default'",
        ),
        ("[evaluations.elsewhere]", "[evaluations.second]", "a model is called 'second' too"),
        ('suite = "permuted"\nmodels', 'suite = "permute"\nmodels', "did you mean 'permuted'"),
    ],
)
def test_what_evaluations_and_bases_name_must_be_there(
    write_config: Callable[[str], Path], graph: Callable, old: str, new: str, message: str
) -> None:
    text = CHAIN.replace(old, new)
    assert text != CHAIN
    with pytest.raises(ConfigError, match=message):
        graph(write_config(text))


def test_another_module_in_a_recipe_file_of_one_s_own_is_another_model(
    graph: Callable, tmp_path: Path
) -> None:
    own = tmp_path / "own.toml"
    text = f'{TINY}\n[models.own]\nrecipe = "{own}"\ndataset = "dissent"\n'
    hashes = []
    for module in ("ngram", "sif"):
        own.write_text(f'recipe = "dissent.{module}"\n', encoding="utf-8")
        config = tmp_path / f"build_{module}.toml"  # Luigi keeps the tasks of a file
        config.write_text(text, encoding="utf-8")
        hashes.append(graph(config))
    changed = {title for title in hashes[0] if hashes[0][title] != hashes[1][title]}
    assert changed == {"model own", "report tiny", "all tiny"}


def test_the_kind_of_a_source_and_the_paths_of_its_files_count(
    write_novel: Callable, write_config: Callable[[str], Path], tmp_path: Path, graph: Callable
) -> None:
    write_novel("novels/a/one")
    folder = GLOB.replace("/novels/*.txt", "/novels")
    first = graph(write_config(folder))["documents novels"]
    other = graph(write_config(folder.replace("text:", "wsj:")))["documents novels"]
    (tmp_path / "novels" / "a").rename(tmp_path / "novels" / "b")
    moved = graph(write_config(folder))["documents novels"]
    assert len({first, other, moved}) == 3


MODEL = (
    TINY
    + """
[models.bilstm]
recipe = "dissent/bilstm_tiny"
dataset = "dissent"
config = "all"
settings = {}
"""
)


def test_the_settings_of_a_model_win_and_count(
    write_config: Callable[[str], Path], graph: Callable, tmp_path: Path
) -> None:
    vectors = tmp_path / "vectors.txt"

    def model(settings: str) -> str:
        text = MODEL.replace("settings = {}", f"settings = {settings}")
        return graph(write_config(text))["model bilstm"]

    plain = model("{}")
    assert model("{ seed = 6 }") != plain != model("{ threads = 8 }")
    assert model("{ seed = 5, threads = 1 }") == plain
    vectors.write_text("the 0.1\n", encoding="utf-8")
    before = model(f"{{ vectors = '{vectors}' }}")
    vectors.write_text("the 0.2 \n", encoding="utf-8")
    assert before != model(f"{{ vectors = '{vectors}' }}")


def test_a_table_of_a_recipe_counts_below_that_of_the_build_file(
    write_config: Callable[[str], Path], graph: Callable, tmp_path: Path
) -> None:
    text = TINY + (
        '[models.m]\nrecipe = "r.toml"\ndataset = "permuted"\nconfig = "contrastive"\n'
        "settings = { backbone_config = { num_hidden_layers = 1 } }\n"
    )

    def model(size: int) -> str:
        recipe = 'recipe = "coherence.contrastive"\n[settings.backbone_config]\n'
        recipe += f'model_type = "bert"\nhidden_size = {size}\n'
        (tmp_path / "r.toml").write_text(recipe, encoding="utf-8")
        return graph(write_config(text))["model m"]

    assert model(64) != model(32)


def test_a_tokenizer_counts_by_its_contents(
    write_config: Callable[[str], Path], graph: Callable, tmp_path: Path
) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    config = write_config(
        TINY.replace("[datasets.permuted]", f"[datasets.permuted]\ntokenizer = '{tokenizer}'")
    )
    hashes = set()
    for content in ("{}", "{ }"):
        tokenizer.write_text(content, encoding="utf-8")
        hashes.add(graph(config)["dataset permuted"])
    assert len(hashes) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("settings = {}", "settings = { output = 'x' }", "discorpora build --output"),
        ("settings = {}", "settings = { dataset_config = 'all' }", "`config` of the model"),
        ("settings = {}", "base = 'other'", "starts from no other model"),
    ],
)
def test_what_the_build_chooses_is_no_setting_of_a_model(
    write_config: Callable[[str], Path], graph: Callable, old: str, new: str, message: str
) -> None:
    other = MODEL.partition("[models.bilstm]")[2]
    text = MODEL.replace(old, new) + "[models.other]" + other
    with pytest.raises(ConfigError) as error:
        graph(write_config(text))
    assert message in str(error.value)


def test_a_value_is_written_as_it_is_read() -> None:
    value = {"news \U0001f4f0": ['a "b" \\ c', "\x7f\x1b", 1.5, True], "é": {}}
    assert tomllib.loads(f"value = {toml_value(value)}") == {"value": value}


def test_a_byte_order_mark_and_odd_spaces_of_a_text_leave_the_lines_as_they_are(
    tmp_path: Path,
) -> None:
    config = tmp_path / "one.toml"
    text = TINY.replace("[datasets.sp]", '[datasets.sp]\ntitle = "A\u2028B\u0085C"\nsise = 1')
    config.write_text(text, encoding="utf-8-sig")
    line = text.split("\n").index("sise = 1") + 1
    with options(str(config), str(tmp_path / "out")), pytest.raises(ConfigError) as error:
        BuildAll(config=str(config))
    assert f"one.toml:{line}: " in str(error.value) and "'sise'" in str(error.value)


@pytest.mark.parametrize(
    ("header", "keys"),
    [
        ('[datasets."../x"]', ("datasets", "../x")),
        ("[datasets . 'a.b']", ("datasets", "a.b")),
        ('[["a]b#c"."d"]]', ("a]b#c", "d", 0)),
    ],
)
def test_a_quoted_header_of_a_table_has_a_line(
    tmp_path: Path, header: str, keys: tuple[str | int, ...]
) -> None:
    path = tmp_path / "one.toml"
    path.write_text(f"\n{header}\nsise = 1\n")
    file = TomlFile.read(path)
    assert (file.where(keys), file.where((*keys, "sise"))) == (f"{path}:2", f"{path}:3")


DISCOEVAL = (
    CHAIN
    + """
[evaluations.tasks]
suite = "discoeval"
models = ["first"]
dataset = ["sp", "bso"]
settings = { tasks = "SP, BSO" }
"""
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SP, BSO", "SP, DC", "and no dataset is of 'DC'"),
        ("SP, BSO", "SP, BOS", "did you mean 'BSO'"),
        ("SP, BSO", "SP", "the dataset 'bso' is of 'BSO'"),
    ],
)
def test_discoeval_passes_over_nothing_that_it_is_given(
    write_config: Callable[[str], Path], graph: Callable, old: str, new: str, message: str
) -> None:
    graph(write_config(DISCOEVAL))
    text = DISCOEVAL.replace(old, new, 1)
    assert text != DISCOEVAL
    with pytest.raises(ConfigError) as error:
        graph(write_config(text))
    assert message in str(error.value)


NEAR = {"Dataset": "dissent", "Validate": "sample", "Train": "bilstm", "Evaluate": "bilstm"}


@pytest.mark.parametrize("task", NEAR)
def test_a_name_that_is_not_there_is_said(write_config: Callable[[str], Path], task: str) -> None:
    near = NEAR[task]
    with pytest.raises(ConfigError, match=f"'{near}s'.*did you mean '{near}'"):
        getattr(tasks, task)(config=str(write_config(MODEL)), name=f"{near}s")
