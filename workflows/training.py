"""Training and evaluation in processes of their own, started as a user would start them."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.errors import ConfigError, DiscorporaError, nearest
from workflows.programs import Program
from workflows.tables import BuildFile, Evaluation, Model
from zoo.recipe import read_recipe, shipped

OF_THE_BUILD = {
    "dataset": "`dataset` of the model",
    "dataset_config": "`config` of the model",
    "output": "--output of the build",
}
"""Settings of a recipe that its model's table says in another place."""

OF_THE_COMMAND = frozenset({"data", "model", "json", "name", "split", "limit", "seed", "threads"})
"""Options of an evaluation that are none of a suite's own."""

OPTION = re.compile(r"--([a-z_]+)|\b([a-z_]+) = ")
"""The key of an option of a command line, or of a line of a recipe, in a message."""


def recipe_settings(model: Model, where: str, **usual: Any) -> dict[str, Any]:
    """A recipe's settings with the build's (`usual`) and the model's own on top.

    `where` is the model's table in the build file.

    Raises `ConfigError` for a recipe or a setting that is not there, and for one that is the
    build's to choose. Loads no torch.
    """
    try:
        recipe = read_recipe(model.recipe)
    except ConfigError as error:
        found = f"{where}.recipe: {error.where}" if error.where else f"{where}.recipe"
        raise ConfigError(error.message, where=found, hint=error.hint) from None
    known = _setting_names(recipe.module) - OF_THE_BUILD.keys()
    if model.base and "backbone" not in known:
        raise ConfigError(
            f"{model.base!r}: the recipe {model.recipe} starts from no other model",
            where=f"{where}.base",
            hint="leave out `base`, or take a recipe with the setting `backbone`",
        )
    for key in model.settings:
        if key in OF_THE_BUILD or (key == "backbone" and model.base):
            raise ConfigError(
                f"{key!r} cannot be among the settings of the recipe {model.recipe}",
                where=f"{where}.settings",
                hint=f"it follows from {OF_THE_BUILD.get(key, '`base` of the model')}",
            )
        if key not in known:
            raise ConfigError(
                f"unknown setting {key!r} of the recipe {model.recipe}; "
                f"{nearest(key, known)}".rstrip("; "),
                where=f"{where}.settings",
                hint=f"valid here: {', '.join(sorted(known))}",
            )
    # A file of one's own may come to name another module of the same family.
    module = {} if recipe.path in shipped().values() else {"module": recipe.module}
    return {"recipe": recipe.name, **module, **recipe.settings, **usual, **model.settings}


def check_values(wanted: Sequence[Mapping[str, Any]], threads: int, where: str) -> None:
    """Raise `ConfigError` for the first value that a recipe would refuse.

    `wanted` is what `zoo.check` reads. It loads torch, so it is a process of its own.
    """
    program = Program("zoo.check", [], threads, json.dumps(wanted))
    if reason := program.run():
        raise ConfigError(reason, where=where)


def external_inputs(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a recipe needs from outside: a backbone by Hub id, word vectors by path."""
    found = []
    backbone = str(settings.get("backbone", ""))
    if backbone and not Path(backbone).is_dir():
        found.append((f"backbone {backbone}", "from the network"))
    vectors = str(settings.get("vectors", ""))
    if vectors and not Path(vectors).is_file():
        found.append((f"vectors {vectors}", "no such file"))
    return found


def _setting_names(module: str) -> set[str]:
    """The fields of a recipe module's `Settings`, read from its text: importing it loads torch."""
    return _fields_in(f"zoo.{module}", "Settings")


def _fields_in(module: str, name: str) -> set[str]:
    """The annotated fields of a class of the zoo and of its bases there, imported or not."""
    from zoo.recipe import ROOM

    text = ROOM.parent.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")
    tree = ast.parse(text)
    imported: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module_of = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            imported |= {each.asname or each.name: f"{module_of}{each.name}" for each in node.names}
    head, dot, last = name.rpartition(".")  # `zoo.training.settings.Settings`, or `Settings`
    if path := imported.get(name) or (dot and f"{imported.get(head, head)}.{last}"):
        place, _, kind = path.rpartition(".")
        return _fields_in(place, kind) if place.startswith("zoo.") else set()
    own = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name), None)
    if own is None:  # a base from elsewhere
        return set()
    names = {
        n.target.id
        for n in own.body
        if isinstance(n, ast.AnnAssign)
        and isinstance(n.target, ast.Name)
        and not ast.unparse(n.annotation).startswith("ClassVar")
    }
    return names.union(*(_fields_in(module, ast.unparse(base)) for base in own.bases))


def train(
    model: Model,
    name: str,
    dataset: Path,
    base: Path | None,
    output: Path,
    settings: Mapping[str, Any],
) -> None:
    """Train `model` into the folder `output`; what a killed run left there is taken up again.

    `name` is the model's in the build file, `base` the folder of the model whose encoder it
    starts from. Raises `DiscorporaError` with what the recipe says.
    """
    threads = settings["threads"]
    words = [model.recipe, "--dataset", str(dataset), "--output", str(output)]
    if model.config:
        words += ["--dataset_config", model.config]
    words += ["--seed", str(settings["seed"]), "--threads", str(threads)]
    if base:
        words += ["--backbone", str(base)]
    known = _setting_names(read_recipe(model.recipe).module) - OF_THE_BUILD.keys()
    program = Program("zoo.train", words + options(model.settings), threads)
    _run(program, f"models.{name}", known.__contains__)


def evaluate(
    plan: Evaluation, name: str, trained: Path, data: str, folder: Path, build: BuildFile
) -> dict[str, Any]:
    """Evaluate the trained model `name` on `data` into `folder`; the counts for its manifest.

    Raises `DiscorporaError` with what the suite says.
    """
    plans = [key for key, entry in build.evaluations.items() if entry == plan]
    table = f"evaluations.{plans[0] if plans else 'NAME'}"
    results = folder / "results.json"
    words = [
        *(build.reference(plan.suite), "--model", str(trained), "--name", name, "--data", data),
        *("--json", str(results), "--threads", str(build.threads)),
        *("--seed", str(build.seed), "--limit", str(plan.limit)),
    ]
    program = Program("zoo.evaluate", words + options(plan.settings), build.threads)
    _run(program, table, lambda key: key not in OF_THE_COMMAND)
    metrics = json.loads(results.read_text(encoding="utf-8"))
    return {"examples": metrics.get("examples")}


def train_command(recipe: str, arguments: Sequence[str]) -> int:
    """`discorpora train`: as `python -m zoo.train`, in this process."""
    from zoo.train import main

    return main([recipe, *arguments])


def evaluate_command(
    suite: str, model: str, data: str, json_file: Path | None, arguments: Sequence[str]
) -> int:
    """`discorpora evaluate`: as `python -m zoo.evaluate`, in this process."""
    from zoo.evaluate.__main__ import main

    out = ["--json", str(json_file)] if json_file else []
    return main([suite, "--model", model, "--data", data, *out, *arguments])


def _run(program: Program, table: str, own: Callable[[str], bool]) -> None:
    """Run it. Of a failure the cause is said first, the command last.

    `table` of the build file holds the settings, of which `own` tells the names.
    """
    reason = program.run()
    if not reason:
        return
    cause, *rest = reason.splitlines()
    advice = [line.strip() for line in rest if line.strip()]
    named = dict.fromkeys(option or key for option, key in OPTION.findall("\n".join(advice)))
    if keys := ", ".join(filter(own, named)):
        advice.append(f"in the build file: {keys} among the settings of [{table}]")
    command = shlex.join(["python", *program.command[1:]])
    raise DiscorporaError(
        cause, hint="\n  ".join([*advice, f"to see all that it prints: {command}"])
    )


def options(settings: Mapping[str, Any], table: str = "") -> list[str]:
    """Settings as the options of a command line; those of a table one by one, `--table.key`."""
    words: list[str] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            words += options(value, f"{table}{key}.")
        else:
            words += [f"--{table}{key}", _as_toml(value)]
    return words


def _as_toml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
