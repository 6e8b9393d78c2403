"""Recipes: their files, the command line's options, the errors that name the key."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corpora.declared import settings_help
from corpora.errors import ConfigError, InputError
from zoo.declared import OBJECTIVES, RECIPES, BackboneRecipe, Mark, Recipe
from zoo.options import parse_flags
from zoo.presets import Preset, catalogue, measurements, read_preset, shipped

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {"dataset": "data", "output": "out"}


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_recipe_is_valid_and_says_what_it_is(name: str) -> None:
    preset = read_preset(name)
    words = {"vectors": "glove.txt"} if name.startswith("dissent/bilstm") else {}
    assert preset.recipe({**NEEDED, **words}).dataset == "data"
    about = preset.about
    assert about.title and about.paper and about.objective and about.published
    family, _, module = preset.reference.partition(".")
    module = {"conpono": "pretraining"}.get(module, module)
    text = (ROOT / "zoo" / family / f"{module}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 200


@pytest.mark.parametrize("name", shipped())
def test_each_difference_from_the_paper_is_on_the_page(name: str) -> None:
    preset = read_preset(name)
    family = name.partition("/")[0]
    page = f"{'recipes' if family == 'dissent' else family}.md"
    text = " ".join((ROOT / "docs/reference" / page).read_text(encoding="utf-8").split())
    for line in (*preset.kind.differs, *preset.about.differs):
        assert line.endswith((".", ").")) and line in text, line


def test_the_catalogue_needs_no_torch() -> None:
    code = (
        "import sys; from zoo.presets import catalogue; assert len(catalogue()) >= 4; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'datasets')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_catalogue_shows_size_time_and_figure_of_trainings_here() -> None:
    entries = {entry.name: entry for entry in catalogue()}
    assert measurements().keys() <= entries.keys()
    tiny = entries["dissent/bilstm_tiny"]
    assert tiny.size.endswith("M") and tiny.time.endswith("s") and "accuracy" in tiny.measured
    scorer = entries["coherence/minilm"]
    assert scorer.time == "110 min" and "87.6" in scorer.measured
    paper = entries["conpono/full"]  # too large to run here
    assert (paper.size, paper.time, paper.measured) == ("84.9M + embeddings", "", "")


def test_the_catalogue_shows_what_was_measured(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(
        '{"recipe": "dissent/bilstm_tiny", "headline": "0.500"}', encoding="utf-8"
    )
    measured = {entry.name: entry.measured for entry in catalogue(tmp_path)}
    assert measured["dissent/bilstm_tiny"] == "0.500"
    assert measured["dissent/bilstm"] == ""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "results.json").write_text(
        '{"recipe": "dissent/bilstm_tiny", "headline": "0.700"}', encoding="utf-8"
    )
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine").symlink_to(tmp_path / "other")
    shutil.copytree(tmp_path / "other", tmp_path / "models" / "copy")  # as in a build
    linked = {entry.name: entry.measured for entry in catalogue(tmp_path / "models")}
    assert linked["dissent/bilstm_tiny"] == "0.700"
    both = {entry.name: entry.measured for entry in catalogue(tmp_path)}
    assert both["dissent/bilstm_tiny"] == "0.700; 0.500"  # in the order of their paths
    (tmp_path / "results.json").write_text("{", encoding="utf-8")
    for folder, message in ((tmp_path, "is not JSON"), (tmp_path / "none", "no such folder")):
        with pytest.raises(InputError, match=message):
            catalogue(folder)


def parsed(preset: Preset, *words: str) -> dict[str, Any]:
    return parse_flags(words, "train", preset.kind)


def test_options_on_top_of_the_file() -> None:
    recipe = read_preset("coherence/contrastive_tiny")
    words = ["--learning-rate", "1e-3", "--epochs=2", "--backbone_config.hidden_size", "32"]
    words += ["--dataset", "d", "--output", "o", "--report_to", '["tensorboard"]']
    settings = recipe.recipe(parsed(recipe, *words))
    assert (settings.learning_rate, settings.epochs, settings.report_to) == (
        1e-3,
        2,
        ("tensorboard",),
    )
    assert settings.backbone_config["hidden_size"] == 32
    assert settings.backbone_config["model_type"] == "bert"
    words += ["--backbone_config", "{}", "--backbone", "x"]
    assert recipe.recipe(parsed(recipe, *words)).backbone_config == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tensorboard", ("tensorboard",)),
        ("tensorboard, wandb", ("tensorboard", "wandb")),
        ("", ()),
    ],
)
def test_lists_without_brackets(text: str, found: tuple[str, ...]) -> None:
    recipe = read_preset("dissent/bilstm_tiny")
    options = {**NEEDED, "report_to": text}
    assert recipe.recipe(options).report_to == found


def test_a_share_of_steps_is_below_one() -> None:
    """transformers takes 1 and more for a number of steps."""
    recipe = read_preset("dissent/transformer_tiny")
    with pytest.raises(ConfigError, match="warmup"):
        recipe.recipe({**NEEDED, "warmup": "1"})


def test_a_list_of_one_number() -> None:
    recipe = read_preset("dissent/ngram")
    options = {**NEEDED, **parsed(recipe, "--grid", "0.5")}
    assert recipe.recipe(options).grid == (0.5,)


def test_a_setting_that_is_declared_again_keeps_its_mark() -> None:
    class Slow(BackboneRecipe):
        logging_steps: int = 1
        backbone: str = "x"

    recipe = Slow(dataset="x", output="y")
    assert "backbone" in recipe.marked(Mark.PLACE)
    assert not {"logging_steps", "output", "dataset"} & recipe.identity().keys()


def test_paths_and_logging_do_not_make_another_run() -> None:
    recipe = read_preset("dissent/bilstm_tiny")
    one = recipe.recipe(NEEDED)
    two = recipe.recipe({"dataset": "x", "output": "y", "logging_steps": 7})
    assert one.identity() == two.identity()
    assert one.identity() != recipe.recipe({**NEEDED, "seed": 1}).identity()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('recipe = "dissent.bilstm"\n[settings]\nepocs = 3\n', ("toml:3", "epochs")),
        ('recipe = "dissent.bilstm"\n[settings]\nepochs = "many"\n', ("toml:3", "number")),
        ('recipe = "dissent.bilstm"\n[setings]\n', ("settings", "setings")),
        ('recipe = "dissent.bilstn"\n', ("toml:1", "dissent.bilstm")),
        ("recipe = \n", ("not valid TOML",)),
        ('recipe = "dissent.bilstm"\nsettings = 3\n', ("settings = 3: expected a table",)),
        (
            'recipe = "dissent.bilstm"\n[settings]\npooling = "sum"\n',
            ("toml:3", "'max' or 'mean'"),
        ),
    ],
)
def test_a_wrong_recipe_is_named_with_its_line(
    text: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        recipe = read_preset(file)
        recipe.recipe(NEEDED)
    for part in expected:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "name", ["2026", "1.10", "1e5", "0x1F", "1_000", "1 # x", "true", "[x]y", "true north"]
)
def test_a_folder_may_have_any_name(name: str) -> None:
    recipe = read_preset("dissent/ngram")
    options = parsed(recipe, "--dataset", "d", "--output", name, "--columns", f"s1,{name}")
    assert recipe.recipe(options).output == name
    assert options["columns"] == f"s1,{name}"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dissent/bilstm_tiny", "max_tokens=0 max_tokens=-1 epochs=0 shrink=0 max_train_rows=-5"),
        ("dissent/bilstm_tiny", "batch_size=0 gradient_accumulation=0 threads=0 seed=-1"),
        ("dissent/bilstm_tiny", "learning_rate=-1 learning_rate=inf vocab_size=1 logging_steps=0"),
        ("dissent/transformer_tiny", "classes=1 warmup=-1 dropout=2 columns=s1 hidden_dropout=2"),
        ("dissent/ngram", "longest=0 min_texts=0 features=0 iterations=0 grid=0 grid="),
        ("dissent/sif", "size=0 smoothing=0 epochs=7"),
        ("criteria/bigru_tiny", "criteria=nl,nl max_tokens=0 bins=0"),
        ("coherence/contrastive_tiny", "negatives=0 anneal_calls=0 max_tokens=2 patience=-1"),
        ("coherence/unc_tiny", "kernel_size=0 max_words=0"),
        ("coherence/full_tiny", "mine_every=0 queue_size=0 candidates=0 shortest_slice=0"),
        ("coherence/full_tiny", "momentum=1.5 momentum_weight=-0.1"),
        ("conpono/tiny", "k=0 targets=-1 mask_rate=1 mask_rate=-0.1 anchor_sentences=0 workers=-2"),
        ("conpono/tiny", "target_sentences=0 max_tokens=5 warmup=1000 block_tokens=0"),
    ],
)
def test_values_out_of_bounds_are_named(name: str, options: str) -> None:
    recipe = read_preset(name)
    for option in options.split(" "):
        with pytest.raises(ConfigError, match=option.partition("=")[0]) as caught:
            recipe.recipe({**NEEDED, **parsed(recipe, f"--{option}")})
        assert "command line" in str(caught.value)


def test_options_that_do_not_exist() -> None:
    recipe = read_preset("dissent/bilstm_tiny")
    with pytest.raises(ConfigError, match="did you mean 'learning_rate'"):
        recipe.recipe({**NEEDED, "learning_rte": "1"})
    with pytest.raises(ConfigError, match="'dataset' is missing"):
        recipe.recipe({"output": "o"})
    for words in (["--epochs"], ["--seed", "1", "--epochs"], ["--epochs", "--seed", "1"]):
        with pytest.raises(ConfigError, match="'--epochs' has no value"):
            parsed(recipe, *words)
    with pytest.raises(ConfigError, match="'1' is no option"):
        parsed(recipe, "--epochs", "2", "1")
    with pytest.raises(ConfigError, match="no option --learning_rte; did you mean '--learning_r"):
        parsed(recipe, "--learning-rte", "1")
    given = parsed(recipe, "--max_steps", "-1", "--vectors=--x")
    assert given == {"max_steps": -1, "vectors": "--x"}
    with pytest.raises(ConfigError, match="did you mean"):
        read_preset("dissent/bilstm_tinny")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("criteria.x", r"command line: criteria.* = {'x': 3}: expected 'nl'"),
        ("epochs.x.y", r"command line: epochs = {'x': {'y': 3}}: expected a number"),
    ],
)
def test_a_key_below_a_setting_that_is_no_table(option: str, message: str) -> None:
    recipe = read_preset("criteria/bigru_tiny")
    options = {**NEEDED, **parsed(recipe, f"--{option}", "3")}
    with pytest.raises(ConfigError, match=message):
        recipe.recipe(options)


@pytest.mark.parametrize("name", shipped())
def test_help_says_what_every_setting_means(name: str) -> None:
    recipe = read_preset(name)
    text = settings_help(recipe.kind, recipe.settings)
    for key, field in recipe.kind.model_fields.items():
        value = recipe.settings.get(key, field.get_default(call_default_factory=True))
        shown = "required" if field.is_required() else repr(value)
        said = re.search(rf"^  --{key} {re.escape(shown)}.*\n      (\S.*)", text, re.M)
        assert said and len(said[1]) > 10, key


def test_help_shows_the_choices_and_the_class_s_own_words() -> None:
    recipe = read_preset("conpono/minilm")
    text = settings_help(recipe.kind, recipe.settings)
    assert "--encoder 'full'  (full, isolated, uni)" in text
    assert "Anchors of a step" in text and "Examples of an optimizer step" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_recipe_file_that_is_not_there_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"no recipe 'own.toml'\n.*looked in '{tmp_path}'"):
        read_preset("own.toml")
    with pytest.raises(ConfigError, match="did you mean 'dissent/ngram'"):
        read_preset("dissent/ngrm.toml")


def test_a_setting_without_a_text_is_shown_by_itself() -> None:
    class Own(Recipe):
        width: int = 3

    assert "  --width 3  (whole number)\n" in settings_help(Own)


@pytest.mark.parametrize("family", ["dissent", "coherence", "conpono", "criteria"])
def test_declarations_load_nothing_heavy(family: str) -> None:
    code = (
        f"import sys, zoo.{family}.recipes; "
        "heavy = {'torch', 'transformers', 'datasets', 'scipy', 'sklearn', 'pyarrow'}; "
        "sys.exit(', '.join(heavy & {*sys.modules}) or None)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_every_name_leads_to_a_class_that_says_what_it_is() -> None:
    for registry in (RECIPES, OBJECTIVES):
        for name in registry.built_in:
            kind = registry.find(name)
            assert kind.summary() and kind.paper, name
    trained = {name for name in RECIPES.built_in if RECIPES.find(name).trains}
    assert {read_preset(path).reference for path in shipped().values()} == trained
