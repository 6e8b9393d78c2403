"""Answers of raters: read, counted, scored.

Read are the output of a batch or of `corpora.ratings.endpoint` (`custom_id`, `response`) and that
of the page (`custom_id`, `rating`), a file for each rater. An item counts only if it has one
answer, with one of its ratings; everything else is counted as unusable. A figure is given only if
`USABLE` of its items have usable answers.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from corpora.audit.rules import with_interval
from corpora.errors import BadRecord, ConfigError, InputError
from corpora.intervals import FEW
from corpora.outside import parse_json
from corpora.ratings.draw import Draw
from corpora.readers.rows import json_rows

USABLE = 0.9
"""The least share of usable answers for a figure."""
_ID = re.compile(r"([0-9a-f]{12})-([0-9a-f]{8})-(\d{4,9})")
_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


@dataclass(frozen=True)
class Answers:
    """A rater's ratings by the item's number (from 0), and the number of unusable answers by kind.

    - `missing`: items without an answer
    - `double`: items with several answers
    - `failed`: items for which the endpoint gave an error
    - `unparsable`: items whose answer has none of their ratings
    - `other draw`, `unreadable line`: lines that belong to no item
    """

    rater: str
    ratings: dict[int, str]
    unusable: dict[str, int]


@dataclass(frozen=True)
class Share:
    """The share of items rated as expected and its 95 % interval over documents, in per cent.

    `value` is None if too few answers are usable, `interval` also if there are fewer than
    `corpora.intervals.FEW` documents.
    """

    items: int
    usable: int
    value: float | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Rater:
    """The figures of one rater: the share of items rated as expected, of all and of each group, the
    number of each rating and of unusable answers, and Cohen's kappa on the anchors, whose right
    rating is known."""

    name: str
    share: Share
    unusable: dict[str, int]
    ratings: dict[str, int]
    kappa_with_anchors: float | None = None
    groups: dict[str, Share] = field(default_factory=dict)


@dataclass(frozen=True)
class Agreement:
    """Cohen's kappa of two raters over the items that both rated; None if it is not defined."""

    raters: tuple[str, str]
    items: int
    kappa: float | None


@dataclass(frozen=True)
class Scores:
    """The scores of the raters of a draw, each alone and each two (`agreement`).

    `digest` is that of the dataset's rows, `draw` and `rubric` are names, `measures` says what a
    share of expected ratings means. `items` counts the drawn rows, without `anchors`.
    """

    dataset: str
    config: str
    digest: str
    draw: str
    rubric: str
    measures: str
    items: int
    anchors: int
    raters: list[Rater]
    agreement: list[Agreement]


def read_answers(path: Path, draw: Draw) -> Answers:
    """Return the answers in a file, whose name is that of the rater.

    Raises `InputError` for a missing file, and for answers to rows of a dataset that has changed.
    """
    if not path.is_file():
        raise InputError("no such file", where=str(path), hint="give the answers as JSON Lines")
    # Collect the answers of each item.
    numbers = {id: number for number, id in enumerate(draw.ids())}
    answers: defaultdict[int, list[str]] = defaultdict(list)
    unusable = Counter[str]()
    for where, record in json_rows(path):
        id = "" if isinstance(record, BadRecord) else str(record.get("custom_id"))
        match = _ID.fullmatch(id)
        if match and match[1] != draw.digest[:12]:
            raise InputError(
                f"an answer about rows with the digest {match[1]}; now it is {draw.digest[:12]}",
                where=where,
                hint="the dataset has changed, or it is another one: draw and rate again",
            )
        if isinstance(record, BadRecord) or id not in numbers:
            unusable["other draw" if match and match[2] != draw.name else "unreadable line"] += 1
            continue
        number = numbers[id]
        choices = draw.rubric.choices(draw.items[number].fields)
        answers[number].append(_rating(record, choices))
    # An item needs exactly one usable answer.
    ratings = {}
    for number in range(len(draw.items)):
        given = answers[number]
        problem = "missing" if not given else "double" if len(given) > 1 else ""
        if problem or given[0] in _PROBLEMS:
            unusable[problem or given[0]] += 1
        else:
            ratings[number] = given[0]
    return Answers(path.stem, ratings, dict(unusable))


_FAILED, _UNPARSABLE = _PROBLEMS = ("failed", "unparsable")


def _rating(record: Mapping[Any, Any], choices: Sequence[str]) -> str:
    """Return the rating of an answer, or the name of its problem: failed, unparsable.

    A model may answer with a JSON object, also in a fence, or with the rating alone; a rating
    inside other words is not taken.
    """
    said = record.get("rating")
    if "rating" not in record:
        try:
            response = record["response"]
            if record.get("error") or response["status_code"] != 200:
                return _FAILED
            said = response["body"]["choices"][0]["message"]["content"]
        except (KeyError, TypeError, IndexError):
            return _FAILED
    text = str(said).strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    with suppress(InputError):
        value = parse_json(text)
        text = str(value.get("rating", "")) if isinstance(value, dict) else str(value)
    rating = text.strip().casefold()
    return rating if rating in choices else _UNPARSABLE


def score(draw: Draw, answers: Sequence[Answers]) -> Scores:
    """Score the answers of raters. Raises `ConfigError` if two raters have one name."""
    names = [one.rater for one in answers]
    if twice := [name for name, number in Counter(names).items() if number > 1]:
        raise ConfigError(
            f"two files of answers are called {twice[0]}", hint="name each file after its rater"
        )
    # Items by their numbers: drawn rows (also by group), and anchors, whose ratings are known
    drawn = [n for n, item in enumerate(draw.items) if not item.anchor]
    anchors = [n for n, item in enumerate(draw.items) if item.anchor]
    expected = {n: item.expected for n, item in enumerate(draw.items)}
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for n in drawn:
        groups[draw.items[n].group].append(n)
    # Each rater alone, and each two raters
    raters = [
        Rater(
            name=one.rater,
            share=_share(draw, one, drawn),
            unusable=dict(sorted(one.unusable.items())),
            ratings=dict(Counter(one.ratings[n] for n in drawn if n in one.ratings).most_common()),
            kappa_with_anchors=_kappa(draw, one.ratings, expected, anchors)[1],
            groups={g: _share(draw, one, m) for g, m in sorted(groups.items()) if g},
        )
        for one in answers
    ]
    agreement = [
        Agreement((a.rater, b.rater), *_kappa(draw, a.ratings, b.ratings, drawn))
        for a, b in combinations(answers, 2)
    ]
    return Scores(
        dataset=draw.dataset,
        config=draw.config,
        digest=draw.digest,
        draw=draw.name,
        rubric=draw.rubric.name,
        measures=draw.rubric.measures,
        items=len(drawn),
        anchors=len(anchors),
        raters=raters,
        agreement=agreement,
    )


def _share(draw: Draw, answers: Answers, members: Sequence[int]) -> Share:
    """Return the share of the items `members` that a rater rated as expected."""
    usable = [n for n in members if n in answers.ratings]
    if not usable or len(usable) < USABLE * len(members):
        return Share(len(members), len(usable))
    right = [float(answers.ratings[n] == draw.items[n].expected) for n in usable]
    documents = [draw.items[n].doc for n in usable]
    value, low, high = with_interval(right, documents)
    interval = (low, high) if len({*documents}) >= FEW else None
    return Share(len(members), len(usable), value, interval)


def _kappa(
    draw: Draw, one: Mapping[int, str], other: Mapping[int, str], members: Sequence[int]
) -> tuple[int, float | None]:
    """Return the number of items that both rated, and Cohen's kappa if they are enough.

    Kappa is not defined if all ratings are equal.
    """
    both = [n for n in members if n in one and n in other]
    if not both or len(both) < USABLE * len(members):
        return len(both), None
    sides = ([draw.rubric.category(ratings[n]) for n in both] for ratings in (one, other))
    first, second = sides
    if len({*first, *second}) == 1:
        return len(both), None
    from sklearn.metrics import cohen_kappa_score

    kappa = float(cohen_kappa_score(first, second))
    return len(both), None if math.isnan(kappa) else round(kappa, 3)
