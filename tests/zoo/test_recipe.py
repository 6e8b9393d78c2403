"""Recipes: their files, the command line's options, the errors that name the key."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import pytest

from corpora.errors import ConfigError, InputError
from zoo.catalogue import catalogue
from zoo.explain import described
from zoo.recipe import make_settings, parse_options, read_recipe, shipped
from zoo.training.settings import RunSettings, identity

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {"dataset": "data", "output": "out"}


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_recipe_is_valid_and_says_what_it_is(name: str) -> None:
    recipe = read_recipe(name)
    module = recipe.load_module()
    settings = make_settings(recipe, module.Settings, NEEDED)
    assert settings.dataset == "data"
    assert all(recipe.about.get(key) for key in ("title", "paper", "objective", "published"))
    assert len(Path(module.__file__).read_text().splitlines()) < 200


def test_the_catalogue_needs_no_torch() -> None:
    code = (
        "import sys; from zoo.catalogue import catalogue; assert len(catalogue()) >= 4; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'datasets')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


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
    both = {entry.name: entry.measured for entry in catalogue(tmp_path)}
    assert both["dissent/bilstm_tiny"] == "0.700; 0.500"  # in the order of their paths
    (tmp_path / "results.json").write_text("{", encoding="utf-8")
    for folder, message in ((tmp_path, "is not JSON"), (tmp_path / "none", "no such folder")):
        with pytest.raises(InputError, match=message):
            catalogue(folder)


def test_options_on_top_of_the_file() -> None:
    recipe = read_recipe("coherence/contrastive_tiny")
    words = ["--learning-rate", "1e-3", "--epochs=2", "--backbone_config.hidden_size", "32"]
    words += ["--dataset", "d", "--output", "o", "--report_to", '["tensorboard"]']
    settings = make_settings(recipe, recipe.load_module().Settings, parse_options(words))
    assert (settings.learning_rate, settings.epochs, settings.report_to) == (
        1e-3,
        2,
        ("tensorboard",),
    )
    assert settings.backbone_config["hidden_size"] == 32
    assert settings.backbone_config["model_type"] == "bert"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tensorboard", ("tensorboard",)),
        ("tensorboard, wandb", ("tensorboard", "wandb")),
        ("", ()),
    ],
)
def test_lists_without_brackets(text: str, found: tuple[str, ...]) -> None:
    recipe = read_recipe("dissent/bilstm_tiny")
    options = {**NEEDED, "report_to": text}
    assert make_settings(recipe, recipe.load_module().Settings, options).report_to == found


def test_a_share_of_steps_is_below_one() -> None:
    """transformers takes 1 and more for a number of steps."""
    recipe = read_recipe("dissent/transformer_tiny")
    with pytest.raises(ConfigError, match="warmup"):
        make_settings(recipe, recipe.load_module().Settings, {**NEEDED, "warmup": "1"})


def test_a_list_of_one_number() -> None:
    recipe = read_recipe("dissent/ngram")
    options = {**NEEDED, "grid": "0.5"}
    assert make_settings(recipe, recipe.load_module().Settings, options).grid == (0.5,)


def test_paths_and_logging_do_not_make_another_run() -> None:
    recipe = read_recipe("dissent/bilstm_tiny")
    kind = recipe.load_module().Settings
    one = make_settings(recipe, kind, NEEDED)
    two = make_settings(recipe, kind, {"dataset": "x", "output": "y", "logging_steps": 7})
    assert identity(one) == identity(two)
    assert identity(one) != identity(make_settings(recipe, kind, {**NEEDED, "seed": 1}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('recipe = "dissent.bilstm"\n[settings]\nepocs = 3\n', ("toml:3", "epochs")),
        ('recipe = "dissent.bilstm"\n[settings]\nepochs = "many"\n', ("toml:3", "number")),
        ('recipe = "dissent.bilstm"\n[setings]\n', ("settings", "setings")),
        ('recipe = "dissent.bilstn"\n', ("toml:1", "dissent.bilstm")),
        ("recipe = \n", ("is not TOML",)),
        ('recipe = "dissent.bilstm"\nsettings = 3\n', ("settings = 3 is no table",)),
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
        recipe = read_recipe(file)
        make_settings(recipe, recipe.load_module().Settings, NEEDED)
    for part in expected:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "name", ["2026", "1.10", "1e5", "0x1F", "1_000", "1 # x", "true", "[x]y", "true north"]
)
def test_a_folder_may_have_any_name(name: str) -> None:
    recipe = read_recipe("dissent/bilstm_tiny")
    options = parse_options(["--dataset", "d", "--output", name])
    assert make_settings(recipe, recipe.load_module().Settings, options).output == name


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
        ("coherence/contrastive_tiny", "negatives=0 anneal_steps=0 max_tokens=2 patience=-1"),
        ("coherence/unc_tiny", "kernel_size=0 max_words=0"),
    ],
)
def test_values_out_of_bounds_are_named(name: str, options: str) -> None:
    recipe = read_recipe(name)
    kind = recipe.load_module().Settings
    for option in options.split(" "):
        key, _, value = option.partition("=")
        with pytest.raises(ConfigError, match=key) as caught:
            make_settings(recipe, kind, {**NEEDED, key: value})
        assert "command line" in str(caught.value)


def test_options_that_do_not_exist() -> None:
    recipe = read_recipe("dissent/bilstm_tiny")
    kind = recipe.load_module().Settings
    with pytest.raises(ConfigError, match="did you mean 'learning_rate'"):
        make_settings(recipe, kind, {**NEEDED, "learning_rte": "1"})
    with pytest.raises(ConfigError, match="dataset is not set"):
        make_settings(recipe, kind, {"output": "o"})
    with pytest.raises(ConfigError, match="has no value"):
        parse_options(["--epochs"])
    with pytest.raises(ConfigError, match="did you mean"):
        read_recipe("dissent/bilstm_tinny")


@pytest.mark.parametrize("words", ["--a 1 --a.b 2", "--a.b 2 --a 1", "--a.b 1 --a.b.c 2"])
def test_a_value_is_no_table(words: str) -> None:
    with pytest.raises(ConfigError, match="a is given as a value and as a table"):
        parse_options(words.split())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("criteria.x", r"--criteria\.x: criteria is no table, but \['nl', 'spp', 'sdt'\]"),
        ("epochs.x.y", r"--epochs\.x: epochs is no table, but 3"),
    ],
)
def test_a_key_below_a_setting_that_is_no_table(option: str, message: str) -> None:
    recipe = read_recipe("criteria/bigru_tiny")
    options = {**NEEDED, **parse_options([f"--{option}", "3"])}
    with pytest.raises(ConfigError, match=message):
        make_settings(recipe, recipe.load_module().Settings, options)


@pytest.mark.parametrize("name", shipped())
def test_help_says_what_every_setting_means(name: str) -> None:
    recipe = read_recipe(name)
    settings = recipe.load_module().Settings
    text = described(settings, recipe.settings)
    for field in fields(settings):
        value = recipe.settings.get(field.name, "" if field.default is MISSING else field.default)
        said = re.search(rf"^  --{field.name} {re.escape(repr(value))}.*\n      (\S.*)", text, re.M)
        assert said and len(said[1]) > 10, field.name


def test_help_shows_the_choices_and_the_class_s_own_words() -> None:
    recipe = read_recipe("conpono/minilm")
    text = described(recipe.load_module().Settings, recipe.settings)
    assert "--encoder 'full'  (full, isolated, uni)" in text
    assert "Anchors a step" in text and "Examples of an optimizer step" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_recipe_file_that_is_not_there_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"no recipe file 'own.toml'\n  looked in '{tmp_path}'"):
        read_recipe("own.toml")
    with pytest.raises(ConfigError, match="did you mean 'dissent/ngram'"):
        read_recipe("dissent/ngrm.toml")


def test_help_leaves_out_what_a_setting_does_not_say() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Own(RunSettings):
        width: int = 3

    assert "  --width 3\n" in described(Own, {})
