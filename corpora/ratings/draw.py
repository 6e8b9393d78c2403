"""A draw: random rows of a dataset as numbered items, and the files that raters get.

A folder holds `batch.jsonl` (requests to an OpenAI-compatible endpoint), `page.html` (for people)
and `manifest.json`, the key, which raters must not see. The id of an item, `DATASET-DRAW-NUMBER`,
has the digest of the rows and that of the draw, so that an answer is never taken for another item.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from corpora.audit.data import UNITS, Configuration
from corpora.errors import BadRecord, InputError, check_choice
from corpora.outside import read_record
from corpora.ratings.rubrics import Rubric, form_of, rubrics
from corpora.readers.rows import json_rows
from corpora.rng import stream
from corpora.store.atomic import MANIFEST, cleared, sha256, staged, write_json, write_text
from corpora.store.card import from_template

if TYPE_CHECKING:
    import pyarrow.dataset as pads

ITEMS, ANCHORS = 100, 20
BATCH, PAGE = "batch.jsonl", "page.html"
URL = "/v1/chat/completions"
ANSWER = 'Answer with one JSON object and nothing else: {"rating": "..."}'


class Item(BaseModel):
    """A drawn row: its texts by name, the right rating, its document, its group, its origin.

    An anchor is an item on whose rating (`expected`) readers agreed before.
    """

    fields: dict[str, str]
    expected: str
    doc: str = ""
    group: str = ""
    origin: dict[str, Any] = {}
    anchor: bool = False


class Draw(BaseModel):
    """The items of a configuration `config` that raters rate, in their order, with the `rubric`.

    `digest` is that of the dataset's rows.
    """

    dataset: str
    config: str = ""
    digest: str
    seed: int = 0
    rubric: Rubric
    items: tuple[Item, ...]
    details: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The first 8 digits of the sha256 of all items, the rubric and the seed."""
        text = json.dumps(self.model_dump(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def ids(self) -> list[str]:
        """Return the id of each item."""
        start = f"{self.digest[:12]}-{self.name}"
        return [f"{start}-{number:04}" for number in range(1, len(self.items) + 1)]

    def requests(self, model: str = "") -> Iterator[dict[str, Any]]:
        """Yield the request for each item, as a line of a batch file."""
        rubric = self.rubric
        meanings = "\n".join(f"- {name}: {text}" for name, text in rubric.ratings.items())
        if rubric.numbered:
            meanings = f"- the number of a sentence\n{meanings}"
        told = f"{rubric.title}\n\n{rubric.text}\n\nRatings:\n{meanings}\n\n{ANSWER}"
        for id, item in zip(self.ids(), self.items, strict=True):
            shown = "\n".join(f"{name}: {text}" for name, text in item.fields.items())
            messages = [{"role": "system", "content": told}, {"role": "user", "content": shown}]
            body = {"model": model} if model else {}
            yield {
                "custom_id": id,
                "method": "POST",
                "url": URL,
                "body": body | {"messages": messages},
            }


def draw_rows(
    name: str,
    configuration: Configuration,
    config: str,
    *,
    rubric: str = "",
    split: str = "",
    items: int = ITEMS,
    seed: int = 0,
) -> Draw:
    """Draw `items` rows of a configuration at random, from one split or ("") from all.

    Rows without a label or with an empty text are passed over. Raises `InputError` if no rubric
    fits the columns or no row is left, `ConfigError` for another rubric or an unknown split.
    """
    # Check the arguments.
    form = form_of(configuration, name)
    if rubric:
        check_choice("rubric of such rows", rubric, [form.rubric], name)
    splits = {**configuration.splits}
    if split:
        splits = {split: splits[check_choice("split", split, splits, name)]}
    # Draw rows until there are enough.
    labels = dict(enumerate(configuration.classes.get("label", ())))
    unit = next((column for column in UNITS if column in configuration.schema.names), "")
    drawn: list[Item] = []
    for place, number, row in _shuffled(splits, seed, 2 if form.paired else 1):
        fields, expected = form.item(row, labels.get(row.get("label", -1), ""))
        if expected and fields and all(fields.values()):
            doc = str(row[unit]).split("#")[0] if unit else f"{place} {number}"
            origin = {"split": place, "row": number, "doc": str(row.get("doc", ""))}
            drawn.append(Item(fields=fields, expected=expected, doc=doc, origin=origin))
        if len(drawn) == items:
            break
    if not drawn:
        raise InputError("no row can be rated", where=name, hint="name another split or dataset")
    digest = rows_digest(configuration)
    return Draw(
        dataset=name,
        config=config,
        digest=digest,
        seed=seed,
        rubric=rubrics()[form.rubric],
        items=tuple(drawn),
    )


def _shuffled(
    splits: Mapping[str, pads.Dataset], seed: int, step: int
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield split, number and content of rows in random order, one of each `step` adjacent rows."""
    random = stream(seed, "rate")
    sizes = {split: rows.count_rows() for split, rows in splits.items()}
    starts = [np.arange(0, size, step) for size in sizes.values()]
    owner = np.repeat(np.arange(len(sizes)), [*map(len, starts)])
    numbers = np.concatenate(starts) + random.integers(step, size=len(owner))
    numbers = np.minimum(numbers, np.array([*sizes.values()])[owner] - 1)
    order = iter(random.permutation(len(owner)).tolist())
    names = [*splits]
    while chosen := [*islice(order, ITEMS)]:
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        for place, split in enumerate(names):
            wanted = np.sort([numbers[i] for i in chosen if owner[i] == place])
            table = splits[split].take(pa.array(wanted, pa.int64()))
            rows |= zip(((split, n) for n in wanted.tolist()), table.to_pylist(), strict=True)
        for place in chosen:
            key = names[owner[place]], int(numbers[place])
            yield *key, rows[key]


def rows_digest(configuration: Configuration) -> str:
    """Return a digest of all rows: of the files' sha256 or, without files, of the rows as JSON."""
    digest = hashlib.sha256()
    for split, rows in configuration.splits.items():
        digest.update(f"{split}\n".encode())
        files = getattr(rows, "files", ())
        for file in files:
            digest.update(f"{sha256(Path(file))}\n".encode())
        for batch in () if files else rows.to_batches():
            for row in batch.to_pylist():
                digest.update(f"{json.dumps(row, sort_keys=True, default=str)}\n".encode())
    return digest.hexdigest()


def with_anchors(draw: Draw, path: Path, number: int = ANCHORS) -> Draw:
    """Return a draw with at most `number` anchors of a JSONL file, mixed among its items.

    A line has the fields of an item and the `rating` on which readers agreed. Raises `InputError`,
    with the line, for another one: a rater could tell it from the others.
    """
    names = {frozenset(item.fields) for item in draw.items}
    anchors = []
    for where, record in json_rows(path):
        if isinstance(record, BadRecord):
            raise InputError(record.reason, where=where)
        fields = {str(key): value for key, value in record.items() if key != "rating"}
        if frozenset(fields) not in names or not all(isinstance(v, str) for v in fields.values()):
            raise InputError(
                f"an anchor with the fields {', '.join(fields)}",
                where=where,
                hint=f"expected rating, and as texts {', '.join(draw.items[0].fields)}",
            )
        in_order = {name: fields[name] for name in draw.items[0].fields if name in fields} | fields
        rating = check_choice(
            "rating", str(record.get("rating")), draw.rubric.choices(fields), where
        )
        anchors.append(Item(fields=in_order, expected=rating, anchor=True))
    if not anchors:
        raise InputError("holds no anchor", where=str(path))
    random = stream(draw.seed, "rate", "anchors")
    chosen = [anchors[i] for i in random.permutation(len(anchors))[:number]]
    mixed = [*draw.items, *chosen]
    return draw.model_copy(
        update={"items": tuple(mixed[i] for i in random.permutation(len(mixed)))}
    )


def with_contexts(draw: Draw, contexts: Sequence[str]) -> Draw:
    """Return a draw with a context, the passage of a pair, before each item's other fields.

    Without a context for each item none gets one, since raters would judge them differently.
    """
    if not all(contexts):
        return draw
    items = [
        item.model_copy(update={"fields": {"context": context, **item.fields}})
        for item, context in zip(draw.items, contexts, strict=True)
    ]
    return draw.model_copy(update={"items": tuple(items)})


def write_draw(draw: Draw, folder: Path, model: str = "") -> None:
    """Write the files for raters, and the key, into the new folder `folder`.

    Requests name `model`, if there is one. Raises `DiscorporaError` if the folder exists.
    """
    with staged(folder) as partial:
        cleared(partial)
        lines = (json.dumps(request, ensure_ascii=False) for request in draw.requests(model))
        write_text(partial / BATCH, "".join(f"{line}\n" for line in lines))
        items = [
            {
                "id": id,
                "fields": [*item.fields.items()],
                "choices": draw.rubric.choices(item.fields),
            }
            for id, item in zip(draw.ids(), draw.items, strict=True)
        ]
        page = {"name": draw.name, "rubric": draw.rubric, "items": items}
        write_text(partial / PAGE, from_template("rate.html", page))
        write_json(partial / MANIFEST, {"draw": draw.model_dump()})


class _Key(BaseModel):
    draw: Draw


def read_draw(folder: Path) -> Draw:
    """Return the draw in a folder. Raises `InputError` if there is none."""
    return read_record(_Key, folder / MANIFEST, "draw rows first: discorpora rate DATASET").draw
