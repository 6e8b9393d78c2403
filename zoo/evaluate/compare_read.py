"""Results from files and folders, and the refusal to put two data or protocols in one table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from corpora.errors import InputError
from zoo.evaluate.compare_columns import Cells, Rows, rows_of
from zoo.evaluate.differences import Parts
from zoo.evaluate.outcomes import joined, place_of, read_outcomes

SHAPE = {"metrics": dict, "model": dict, "dataset": (dict, list), "protocol": dict, "notes": list}
HASH = re.compile("[0-9a-f]{16}")
TOLERANCE = 1e-3
"""Per cent: outcomes are kept in float32."""


@dataclass(frozen=True)
class Measured:
    """One result: its JSON, the rows that it gives, and where it was read."""

    result: Mapping[str, Any]
    rows: Rows
    path: Path
    outcomes: Mapping[str, Parts] = field(default_factory=dict)
    of_training: bool = False
    """Whether it is a model folder's own results.json and not a suite's."""
    trainings: int = 1

    @property
    def suite(self) -> str:
        return str(self.result["suite"])

    @property
    def model(self) -> str:
        """The model's name; of a build's stage, whose folder is a hash, the folder around it."""
        name = str(self.result.get("model", {}).get("name") or self.path.stem)
        name = f"{self.path.parent.parent.name} {name[:6]}" if HASH.fullmatch(name) else name
        return name if self.trainings == 1 else f"{name} ({self.trainings} seeds)"

    def may_be(self, other: Measured) -> bool:
        """Whether the other's model has this one's name and, where known, type and training."""
        known = [
            (one.result.get("model", {}).get("type"), one.result.get("trained_on"))
            for one in (self, other)
        ]
        same = all(not a or not b or a == b for a, b in zip(*known, strict=True))
        return self.model == other.model and same

    @property
    def data(self) -> dict[str, str]:
        """Each data set with its revision and the split that was scored.

        A suite may read several; each of them may have its own split (discoeval).
        """
        split = self.result.get("split", "test")
        return {
            name: f"{name}, revision {about['revision']}, split {about.get('split', split)}"
            for name, about in _datasets(self.result.get("dataset", {}))
            if isinstance(about, Mapping) and "revision" in about
        }


def _datasets(found: Any) -> list[tuple[str, Any]]:
    """The data sets of a result: one, a list (discoeval), or several by name (senteval)."""
    if isinstance(found, list):
        return [(f"{about['task']} {about['domain']}", about) for about in found]
    if "revision" in found:
        return [(str(found.get("name", "?")), found)]
    return [(str(name), about) for name, about in found.items()]


def read_results(path: Path) -> list[Measured]:
    """The results in a JSON file, a model folder, or a folder of an evaluation.

    Raises `InputError` for a path that holds none.
    """
    if path.is_dir():
        own = path / "results.json"
        files = [own] if own.is_file() else sorted(path.glob("*.json"))
        found = [_read(file) for file in files]
        kept = [each for each in found if each is not None]
    else:
        one = _read(path)
        kept = [] if one is None else [one]
    if not kept:
        raise InputError(
            "no result here",
            where=str(path),
            hint="give what discorpora evaluate --json wrote, or a folder with results.json",
        )
    return kept


def _read(path: Path) -> Measured | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError("no such file or folder", where=str(path)) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not JSON: {error}", where=str(path)) from error
    if not isinstance(found, dict) or "metrics" not in found:
        return None
    _check_shape(found, path)
    result = found if "suite" in found else _of_training(found, path)
    try:
        rows = rows_of(result)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"is no result of the suite {result['suite']!r}: {error!r}", where=str(path)
        ) from error
    if result is not found:
        return Measured(result, rows, path, of_training=True)
    outcomes = read_outcomes(path)
    _check_outcomes(outcomes, rows[""], path)
    return Measured(result, rows, path, outcomes)


def _check_shape(found: Mapping[str, Any], path: Path) -> None:
    for key, kinds in SHAPE.items():
        if key in found and not isinstance(found[key], kinds):
            raise InputError(f"is no result: {key!r} is {found[key]!r:.80}", where=str(path))


def _check_outcomes(outcomes: Mapping[str, Parts], cells: Cells, path: Path) -> None:
    """Raise `InputError` if they are of another run than the result, whose figures they give."""
    for column, parts in outcomes.items():
        shares = [100 * float(one.right.mean()) for one in parts.values() if one.right is not None]
        shown = cells[column].value if column in cells else None
        if shares and (shown is None or abs(mean(shares) - shown) > TOLERANCE):
            raise InputError(
                f"the outcomes say {column} = {mean(shares):.3f}, {path.name} says "
                f"{'nothing' if shown is None else f'{shown:.3f}'}: they are of another run",
                where=str(place_of(path)),
                hint="evaluate the model again, or remove the file of outcomes",
            )


def _of_training(found: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The results.json of a model folder as the result of the suite that training ends with.

    That is of the test split, or of the validation split where the test's labels are hidden.
    """
    split = next((name for name in ("test", "validation") if name in found["metrics"]), "test")
    metrics = found["metrics"].get(split, found["metrics"])
    suite, data = str(found.get("recipe", "?")).partition("/")[0], found.get("dataset", {})
    if "per_class" in metrics:
        suite = "dissent"
    elif {"documents", "pairs", "baselines"} <= set(metrics):
        # Whatever it was trained on, a scorer's recipe ends with the pairs.
        suite, data = "permuted", {**data, "config": "pairwise"}
    return {
        "suite": suite,
        "split": split,
        "model": {"name": path.parent.name, "type": found.get("model_type", "")},
        "dataset": data,
        "metrics": metrics,
        "seed": found.get("seed"),
    }


def join_seeds(found: Sequence[Measured]) -> list[Measured]:
    """The results of one name and the same columns as one: mean and deviation over trainings.

    A path that comes twice counts once; a model folder's own result is not joined with a suite's,
    which may be of the same training. Raises `InputError` for one name on two types of model.
    """
    groups: dict[tuple[Any, ...], list[Measured]] = {}
    for one in {each.path.resolve(): each for each in found}.values():
        key = (one.suite, one.model, frozenset(one.rows[""]), one.of_training)
        groups.setdefault(key, []).append(one)
    return [_joined(group) if len(group) > 1 else group[0] for group in groups.values()]


def _joined(group: Sequence[Measured]) -> Measured:
    first = group[0]
    for other in group[1:]:
        types = [str(one.result.get("model", {}).get("type", "")) for one in (first, other)]
        if types[0] != types[1]:
            raise InputError(
                f"{first.path} is of a {types[0]}, {other.path} of a {types[1]}, and both are "
                f"named {first.model!r}",
                hint="results of one name are joined: give each model its own with --name",
            )
    cells = {
        name: replace(
            cell,
            value=mean(one.rows[""][name].value for one in group),
            ci=None,
            sd=stdev(one.rows[""][name].value for one in group),
        )
        for name, cell in first.rows[""].items()
    }
    notes = dict.fromkeys(note for one in group for note in one.result.get("notes", []))
    return replace(
        first,
        result={**first.result, "notes": list(notes)},
        rows={**first.rows, "": cells},
        outcomes=joined([one.outcomes for one in group]),
        trainings=len(group),
    )


def refuse_mixed(found: Sequence[Measured]) -> None:
    """Raise `InputError` if two results of one suite are not comparable.

    They are not if a data set has two revisions (or splits), if figures of one column are from
    different data (of a mean: not over the same parts), from another number of examples, or by
    another protocol.
    """
    for number, two in enumerate(found):
        for one in found[:number]:
            if one.suite == two.suite:
                _check(one, two)


def _check(one: Measured, two: Measured) -> None:
    for name in one.data.keys() & two.data.keys():
        _same(one, two, one.data[name], two.data[name], "evaluated on")
    shared = sorted(one.rows[""].keys() & two.rows[""].keys())
    if not shared:
        return
    if not one.data.keys() & two.data.keys():
        _same(one, two, "; ".join(one.data.values()), "; ".join(two.data.values()), "evaluated on")
    for column in shared:
        parts = [", ".join(each.rows[""][column].of) for each in (one, two)]
        _same(one, two, f"{column} ({parts[0]})", f"{column} ({parts[1]})", "evaluated on")
    _check_protocols(one, two)
    counts = one.result.get("examples"), two.result.get("examples")
    same_columns = one.rows[""].keys() == two.rows[""].keys()
    if same_columns and None not in counts:
        _same(one, two, f"{counts[0]} examples", f"{counts[1]} examples", "evaluated on")


def _check_protocols(one: Measured, two: Measured) -> None:
    """A key that only one result has is no difference: a model folder says less than a suite."""
    first, second = one.result.get("protocol", {}), two.result.get("protocol", {})
    shared = sorted(first.keys() & second.keys())
    different = [key for key in shared if first[key] != second[key]]
    texts = [", ".join(f"{key} = {p[key]}" for key in different) for p in (first, second)]
    _same(one, two, texts[0], texts[1], "measured with")


def _same(one: Measured, two: Measured, first: str, second: str, verb: str) -> None:
    if first == second:
        return
    raise InputError(
        f"{one.path} was {verb} {first}; {two.path} was {verb} {second}",
        where=f"suite {one.suite}",
        hint="one table holds one revision of the data and one protocol: evaluate both alike",
    )
