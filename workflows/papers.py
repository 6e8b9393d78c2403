"""A table of a paper, filled from a build: the printed numbers, and those of the build's models.

The cells are those of `discorpora compare`, as are means and standard deviations over seeds; of a
part with a `path` they are the numbers there. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from corpora.outside import read_json
from corpora.store.atomic import MANIFEST, is_complete
from workflows.report.stages import Made, error_file
from workflows.tables import BuildFile, Shown
from workflows.training import RESULTS
from zoo.evaluate.compare import Entry, join_seeds, read_results
from zoo.evaluate.published import PaperTable, Part, paper_table
from zoo.evaluate.results import Result
from zoo.evaluate.table import Cells, percent
from zoo.figures import matrices

PUBLISHED_ONLY = "published only"
TRAINING, VALIDATION, DATASET = "training", "validation", "dataset"
"""A part's `suite`, where its numbers are of a model's training, of a validation or a dataset."""

Points = list[tuple[float, float]]
Absences = dict[tuple[str, str], dict[str, None]]
"""Names of stages without a result, by the reason and the kind of stage."""


@dataclass(frozen=True)
class Line:
    """A row: the paper's numbers and the build's, by the paper's name of the column.

    `state` says why the build has no number: "published only", "skipped: ...", an error.
    """

    name: str
    printed: Mapping[str, float]
    measured: Cells
    state: str = ""
    curves: Mapping[str, Points] = field(default_factory=dict)
    """Of a figure of the progress of trainings."""
    confusions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Filled:
    """A table or figure of a paper with the build's numbers."""

    table: PaperTable
    lines: Sequence[Line]
    notes: Sequence[str]

    def printed(self, line: Line, column: str) -> str:
        """The paper's number with the paper's decimals; "" where it is not known."""
        texts = (part.as_printed(line.name, column) for part in self.table.parts)
        return next(filter(None, texts), "")


def filled(build: BuildFile, stages: Iterable[Made]) -> list[Filled]:
    """The tables of a build file, from the stages that are complete."""
    known = {(stage.stage, stage.key): stage.folder for stage in stages}
    return [_Filling(build, shown, known).table() for shown in build.tables]


class _Filling:
    """Fills a table of a paper with the results of a build.

    `shown` says which models are its rows; `folders` has the folder of each complete stage, by the
    stage's name and key.
    """

    def __init__(
        self, build: BuildFile, shown: Shown, folders: Mapping[tuple[str, str], Path]
    ) -> None:
        self.build, self.shown, self.folders = build, shown, folders
        self.paper = paper_table(shown.table)
        self.notes: dict[str, None] = {}
        self.known: dict[Path, tuple[Entry, Mapping[str, Any]]] = {}

    def table(self) -> Filled:
        """Return the lines of the paper's table with this build's results, further lines, notes."""
        rows = dict(self.shown.rows)
        rest = rows.pop("*", ())
        lines: list[Line] = []
        if over := self.paper.over:
            for name, items in rows.items():
                lines += self.sweep(name, items, over, many=len(rows) > 1)
        else:
            line = self.layers if self.paper.kind == "heat" else self.lines
            for name in self.paper.rows:
                lines += line(name, rows.get(name, rest))
        lines += [self.line(name, items) for name, items in self.shown.more.items()]
        columns, filled_lines = self.paper.columns, [line for line in lines if line.measured]
        of_paper = [line for line in lines if line.name not in self.shown.more]
        if any(column not in line.printed for line in of_paper for column in columns):
            note = "An empty cell of the paper: it has no number there, or it is not known here."
            self.notes[note] = None
        if any(column not in line.measured for line in filled_lines for column in columns):
            self.notes["An empty cell of ours: no result of this build has that number."] = None
        for part in self.paper.parts:
            if part.data:
                self.notes[f"The paper's data: {part.data}."] = None
        return Filled(self.paper, lines, [*self.notes])

    def sweep(self, name: str, items: Iterable[str], key: str, *, many: bool) -> Iterator[Line]:
        """A line for each value of a swept setting."""
        for item in items:
            table, at, on = item.partition("@")
            points = self.build.swept(table, key)
            if not points:
                yield Line(name, {}, {}, f"{table} has no sweep of {key}")
            for value, model in points.items():
                line = self.line(str(value), [f"{model}{at}{on}"])
                yield replace(line, name=f"{name}, {value}") if many else line

    def lines(self, name: str, items: Sequence[str]) -> list[Line]:
        return [self.line(name, items)]

    def layers(self, name: str, items: Sequence[str]) -> list[Line]:
        """A line for each layer of a model; one with the reason if there is no figure of any."""
        layers: dict[int, Cells] = {}
        for part in self.paper.parts:
            for _, content in self.results(part, name, items, {}):
                numbers = content.get("metrics", {}).get("layers", {}).get("layers", ())
                for column in part.columns:
                    values = _at(content, part, name, column) or ()
                    for layer, value in zip(numbers, values, strict=False):
                        cell = percent(value, scale=part.scale)
                        layers.setdefault(layer, {}).setdefault(column, cell)
        lines = [Line(f"{name}, layer {number}", {}, cells) for number, cells in layers.items()]
        return lines or self.lines(name, items)

    def line(self, name: str, items: Sequence[str]) -> Line:
        """The row `name`, of the paper or of the build alone, with the numbers of its models."""
        printed = self.paper.printed(name)
        if not items:
            other = name in self.paper.others
            return Line(name, printed, {}, PUBLISHED_ONLY if other else "no model in this build")
        measured: Cells = {}
        curves: dict[str, Points] = {}
        confusions: dict[str, Mapping[str, Any]] = {}
        reasons: Absences = {}
        parts = [part for part in self.paper.parts if any(row[0] == name for row in part.rows)]
        for part in parts or self.paper.parts:
            for entry, content in self.results(part, name, items, reasons):
                for column, head in zip(part.columns, part.shown_columns, strict=True):
                    if head in measured and column in entry.cells:
                        text = f"{name}, {head}: several results have it, the first is shown; name "
                        self.notes[f"{text}one as MODEL@EVALUATION"] = None
                    elif column in entry.cells:
                        measured[head] = entry.cells[column]
                if part.kind == "progress":
                    curves |= _progress(part, name, content)
                if part.kind == "confusion":
                    named = matrices(content.get("metrics", {})).items()
                    confusions |= {f"{name} {key}".strip(): matrix for key, matrix in named}
        has_numbers = bool(measured or curves)
        if has_numbers and reasons:
            self.notes[f"{name}: {_summary(reasons)}."] = None
        state = "" if has_numbers else _summary(reasons) or "no evaluation fills this row"
        return Line(name, printed, measured, state, curves, confusions)

    def results(
        self, part: Part, row: str, items: Iterable[str], reasons: Absences
    ) -> Iterator[tuple[Entry, Mapping[str, Any]]]:
        """The results of a row for a part, joined over seeds, each with the first one's JSON.

        Why others are not there goes into `reasons`.
        """
        for stages in (group for item in items for group in self.stages(part, item)):
            results = []
            for stage in stages:
                folder = self.folders.get(stage)
                if folder is not None and is_complete(folder):
                    results.append(self.read(stage[0], folder))
                else:
                    reason, kind, key = self.absence(stage)
                    reasons.setdefault((reason, kind), {})[key] = None
            fitting = [
                (_of_part(part, row, entry, content), content)
                for entry, content in results
                if _fits(part, entry)
            ]
            contents = {entry.path: content for entry, content in fitting}
            for entry in join_seeds([entry for entry, _ in fitting]):
                yield entry, contents[entry.path]

    def stages(self, part: Part, item: str) -> list[list[tuple[str, str]]]:
        """The stages whose results an item names, in groups that differ in the seed alone."""
        name, _, on = item.partition("@")
        if part.suite in (VALIDATION, DATASET):
            return [[(part.suite, name)]]
        seeds, build = self.build.seeds(name), self.build
        if part.suite == TRAINING:
            return [[("model", seed) for seed in seeds]]
        # Evaluations that the build file declares, then the one of the model itself
        named = (on,) if on else self.shown.evaluations
        groups = [
            [("evaluation", f"{on}/{seed}") for seed in seeds if seed in evaluation.models]
            for on, evaluation in build.evaluations.items()
            if evaluation.suite == part.suite and (not named or on in named)
        ]
        if build.model(name).suite == part.suite and not named:
            groups.append([("evaluation", seed) for seed in seeds])
        return groups

    def read(self, stage: str, folder: Path) -> tuple[Entry, Mapping[str, Any]]:
        """The result in a stage's folder, and its JSON."""
        if folder not in self.known:
            file = folder / {VALIDATION: "validation.json", DATASET: MANIFEST}.get(stage, RESULTS)
            content = read_json(file)
            content = label_counts(content) if stage == DATASET else content
            nothing = Entry(Result({}, {}, None, {}), file, {}, {})
            entry = read_results(file)[0] if stage == "evaluation" else nothing
            self.known[folder] = entry, content
        return self.known[folder]

    def absence(self, stage: tuple[str, str]) -> tuple[str, str, str]:
        """Why a stage has no result, and the kind and name of the stage that is to blame."""
        kind, key = stage
        on, _, name = key.rpartition("/")
        models = [] if kind in (VALIDATION, DATASET) else [("model", name)]
        for blamed in (stage, *models, ("evaluation", on)):
            if " ".join(blamed) in self.build.skipped:
                return "skipped: no source for", *blamed
        for blamed in (stage, *models):
            folder = self.folders.get(blamed)
            if folder is not None and (file := error_file(folder)).is_file():
                error = file.read_text(encoding="utf-8").splitlines()[0]
                return f"error: {error}, in", *blamed
        return "not built yet:", kind, key


def label_counts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a dataset by configuration and label column, from its manifest.

    For each column, `per_class` has the rows and the per cent of each label in all splits, and
    `total` the rows of all labels.
    """
    counted: dict[str, Any] = {}
    for config, entry in manifest["configs"].items():
        counted[config] = {}
        splits = [split.get("labels", {}) for split in entry["splits"].values()]
        for column in dict.fromkeys(column for split in splits for column in split):
            names = entry["features"][column]["names"]
            rows = {n: sum(split.get(column, {}).get(n, 0) for split in splits) for n in names}
            total = sum(rows.values())
            counted[config][column] = {
                "per_class": {name: _share(number, total) for name, number in rows.items()},
                "total": _share(total, total),
            }
    return counted


def _share(rows: int, total: int) -> dict[str, float | None]:
    """A number of rows, and their per cent of `total` (None if `total` is 0)."""
    return {"rows": rows, "percent": 100 * rows / total if total else None}


def _summary(reasons: Absences) -> str:
    """`not built yet: 12 evaluations, wsj/unc first`: each reason once."""
    texts = []
    for (reason, kind), (first, *others) in reasons.items():
        count = f"{len(others) + 1} {kind}s, {first} first" if others else f"{kind} {first}"
        texts.append(f"{reason} {count}")
    return "; ".join(texts)


def _fits(part: Part, entry: Entry) -> bool:
    """Whether a result is of the part's suite, protocol and configuration of data."""
    if part.suite in (TRAINING, VALIDATION, DATASET):
        return True
    result = entry.result
    config = result.dataset.get("config") if isinstance(result.dataset, Mapping) else None
    return (
        result.suite == part.suite
        and part.protocol in (None, str(result.protocol.get("protocol", "")))
        and part.config in ("", config)
    )


def _of_part(part: Part, row: str, entry: Entry, content: Mapping[str, Any]) -> Entry:
    """Make a row's entry from a result: its cells are the suite's or, if the part of the table has
    a path, the numbers at that path."""
    cells = dict(entry.cells)
    if part.path:
        numbers = {column: _at(content, part, row, column) for column in part.columns}
        cells = {
            column: percent(numbers[column], scale=part.scale, digits=part.decimals(head))
            for column, head in zip(part.columns, part.shown_columns, strict=True)
            if _is_number(numbers[column])
        }
    result = replace(entry.result, model={**entry.result.model, "name": row})
    return replace(entry, result=result, cells=cells, outcomes={}, rules={}, rule_outcomes={})


def _is_number(value: Any) -> bool:
    value = value.get("value") if isinstance(value, Mapping) else value
    return isinstance(value, int | float) and not isinstance(value, bool)


def _at(content: Any, part: Part, row: str, column: str) -> Any:
    """The value in a result at the path of a part; None if the result has no such path."""
    for key in part.path.split("."):
        key = key.replace("{row}", row).replace("{column}", column)
        content = content.get(key) if isinstance(content, Mapping) else None
    return content


def _progress(part: Part, name: str, content: Mapping[str, Any]) -> dict[str, Points]:
    """A curve for each column: its values by step."""
    records = _at(content, part, name, "") or []
    curves = {
        f"{name}, {column}" if len(part.columns) > 1 else name: [
            (float(one["step"]), float(one[column])) for one in records if column in one
        ]
        for column in part.columns
    }
    return {key: points for key, points in curves.items() if points}
