"""The audit of a dataset: the accuracy of simple rules that understand nothing.

A model learns whatever separates the labels. `audited` fits rules that see only lengths,
punctuation, words or shared vocabulary (`corpora.audit.rules`), counts labels and duplicates, and
compares with the accuracy of the same rules on released data. See docs/explanation/audit.md.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora.audit.data import NAMES, Configuration, built, missing_column
from corpora.audit.features import KINDS
from corpora.audit.rules import (
    ALIKE,
    SEED,
    AuditedRow,
    RuleScore,
    make_divisions,
    nearly_equal,
    rule_scores,
    too_few,
)
from corpora.intervals import FEW
from corpora.languages import UNSPACED
from corpora.store.card import from_template
from corpora.store.engine import Engine

__all__ = ["AUDIT_FILE", "Audited", "audited", "built", "exceeded", "rendered", "to_json"]

AUDIT_FILE = "audit.json"
TRAIN = TEST = 4_000
"""Maximum numbers of rows of a configuration for fitting and for scoring."""

RULES = {
    "majority": "the most frequent label",
    "surface": "lengths, case and punctuation of the sentences",
    "first": "the same of the first sentence",
    "bag": "the words and pairs of words that occur",
    "bag_first": "the same of the first sentence",
    "cohesion": "shared vocabulary of the sentences",
    "quotes": "whether quotation marks are balanced",
    "numbers": "surface, cohesion and quotes together",
    "row_order": "the tenth of the split that the row is in",
    "columns": "the columns `position` and `order`",
    "position": "the most frequent position of the changed sentence",
}


@dataclass(frozen=True)
class Share:
    """A share of the `n` rows of a split, in per cent, with its 95 % interval.

    `what` says which rows are counted; `chance` is the share expected by chance, 0 if unknown.
    """

    split: str
    what: str
    value: float
    low: float
    high: float
    n: int
    chance: float = 0.0


@dataclass(frozen=True)
class Audited:
    """The audit of one configuration.

    The rules were fitted on `train` rows, and scored on `test` rows of `units` documents (or rows),
    in `divisions`; `left_out` is the reason if they were not. `above` describes the rules that are
    further above chance than on released data.
    """

    kind: str
    train: int
    test: int
    units: int
    divisions: int
    left_out: str
    rules: list[RuleScore]
    above: list[str]
    labels: list[Share]
    duplicates: list[Share]


@cache
def released() -> dict[str, dict[str, dict[str, float]]]:
    """Return the accuracy of the rules on released data, by kind, rule and name of the data."""
    accuracies: dict[str, dict[str, dict[str, float]]] = {}
    table = tomllib.loads(Path(__file__).with_name("released.toml").read_text("utf-8"))
    for entry in table["released"]:
        of_kind = accuracies.setdefault(entry["kind"], {})
        for rule, value in entry["rules"].items():
            of_kind.setdefault(rule, {})[entry["data"]] = value
    return accuracies


def audited(configs: Mapping[str, Configuration], spill: Path) -> dict[str, Audited]:
    """Audit each configuration; the same input gives the same figures.

    `spill` is a folder where queries over many rows may write temporary files.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), Engine(spill) as engine:
        return {name: _audited(config, engine) for name, config in configs.items()}


def to_json(audits: Mapping[str, Audited]) -> dict[str, Any]:
    """Return the content of `audit.json` for the audits of configurations by name."""
    return {
        "sample": {"train": TRAIN, "test": TEST, "seed": SEED},
        "configs": {name: asdict(audit) for name, audit in audits.items()},
    }


def _audited(config: Configuration, engine: Engine) -> Audited:
    """Audit one configuration."""
    # Shares of labels and duplicates, in all rows
    labels = list(_label_shares(config, engine))
    duplicates = list(_duplicate_shares(config, engine))
    if not config.kind:
        fitting = [kind for kind in KINDS if not missing_column(config.schema, kind)]
        left_out = (
            f"--kind can be {' or '.join(fitting)}" if fitting else "no rule is for such rows"
        )
        return Audited("", 0, 0, 0, 0, left_out, [], [], labels, duplicates)
    # A sample of rows; the test rows are drawn from each split by its size.
    train = config.sample("train", TRAIN) if "train" in config.splits else []
    sizes = {name: rows.count_rows() for name, rows in config.splits.items() if name != "train"}
    test = [
        row
        for split, size in sizes.items()
        for row in config.sample(split, -(-TEST * size // max(TEST, sum(sizes.values()))))
    ]
    # Accuracies of rules
    divisions = make_divisions(train, test)
    uneven_lengths = _uneven_lengths(config.kind, [*train, *test])
    left_out = next(filter(None, [uneven_lengths, *map(too_few, divisions)]), "")
    rules = [] if left_out else rule_scores(KINDS[config.kind], divisions)
    for name, share in ({} if left_out else nearly_equal(divisions[0])).items():
        duplicates.append(Share("scored", f"nearly equal to {name}", *share))
    return Audited(
        kind=config.kind,
        train=len(divisions[0].train),
        test=sum(len(division.test) for division in divisions),
        units=len({row.unit for division in divisions for row in division.test}),
        divisions=len(divisions),
        left_out=left_out,
        rules=rules,
        above=[warning for rule in rules if (warning := _warning(config.kind, rule))],
        labels=labels,
        duplicates=duplicates,
    )


def _uneven_lengths(kind: str, rows: Sequence[AuditedRow]) -> str:
    """Return the reason if texts of `sp` or `dc` differ in their numbers of sentences, else ""."""
    lengths = sorted({len(text) for row in rows for text in row.texts})
    if kind not in ("sp", "dc") or len(lengths) < 2:
        return ""
    return f"its texts have {lengths[0]} to {lengths[-1]} sentences, where {kind} needs one number"


def exceeded(kind: str, rule: RuleScore) -> Mapping[str, float]:
    """Return the accuracy of a rule on released data, by name of the data, if the rule's interval
    lies above all of them; else nothing. Released data have even classes: chance is the same."""
    released_values = released().get(kind, {}).get(rule.rule, {})
    if not released_values or rule.low <= max(released_values.values()):
        return {}
    return released_values


def _warning(kind: str, rule: RuleScore) -> str:
    """Return a warning if a rule does better than on all released data, else ""."""
    figures = ", ".join(f"{value} on {data}" for data, value in exceeded(kind, rule).items())
    if not figures:
        return ""
    return f"{rule.rule} reaches {rule.value} ({rule.low} to {rule.high}); it reaches {figures}"


# Counted over all rows.


def _share(split: str, what: str, count: int, n: int, chance: float = 0.0) -> Share:
    """Return the share of `count` among `n` rows, with a Wilson interval."""
    from scipy.stats import binomtest

    interval = binomtest(count, n).proportion_ci(method="wilson")
    value, low, high = (round(100 * float(x), 1) for x in (count / n, interval.low, interval.high))
    return Share(split, what, value, low, high, n, round(chance, 1))


def _label_shares(config: Configuration, engine: Engine) -> Iterator[Share]:
    """Yield the share of the most frequent label, for each label column and split."""
    unnamed: dict[str, list[str]] = {"label": []} if "label" in config.schema.names else {}
    for column, names in (config.classes or unnamed).items():
        query = f"select {_quoted(column)}, count(*) from split group by all order by 2 desc, 1"
        for split, rows in config.splits.items():
            engine.name("split", rows)
            counts = engine.rows(query)
            label, most = counts[0]
            has_name = names and label is not None and label >= 0
            what = f"{column} `{names[label] if has_name else label}`"
            total = sum(count for _, count in counts)
            yield _share(split, what, most, total, 100 / len(names or counts))


def _duplicate_shares(config: Configuration, engine: Engine) -> Iterator[Share]:
    """Yield the shares of rows whose texts equal those of an earlier row, or of another split.
    Case, punctuation and spaces are ignored. Texts are string columns with more than one word, or
    with a clause of Chinese or Japanese."""
    if not (texts := ", ".join(_text_columns(config))):
        return
    ignored = r"[^\p{L}\p{M}\p{N}]+"  # M: vowel signs of scripts such as Devanagari
    letters = f"regexp_replace(lower(concat_ws(' ', {texts})), '{ignored}', '', 'g')"
    sizes = {}
    for split, rows in config.splits.items():
        engine.name("split", rows)
        engine.run(f'create or replace table "{split}" as select md5({letters}) as key from split')
        ((sizes[split], distinct),) = engine.rows(
            f'select count(*), count(distinct key) from "{split}"'
        )
        yield _share(split, "equal to an earlier row", sizes[split] - distinct, sizes[split])
    for one, two in combinations(config.splits, 2):
        query = f'select count(*) from "{two}" where key in (select key from "{one}")'
        yield _share(two, f"equal to a row of {one}", engine.value(query), sizes[two])


_SEVERAL_WORDS = re.compile(rf" |[{UNSPACED}]{{6}}")
"""A blank between words, or six characters of Chinese or Japanese."""
ROWS_TO_TEST = 100


def _text_columns(config: Configuration) -> Iterator[str]:
    """Yield SQL for each column of strings, or lists of them, that holds texts of several words.
    The first rows decide: more than half of their values must have several words."""
    rows = next(iter(config.splits.values())).head(ROWS_TO_TEST)
    for column in (column for column in rows.schema if column.name not in NAMES):
        is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
        kind = column.type.value_type if is_list else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            values = list(filter(None, rows[column.name].to_pylist()))
            texts = [" ".join(filter(None, value)) if is_list else value for value in values]
            if sum(bool(_SEVERAL_WORDS.search(text)) for text in texts) > len(texts) / 2:
                name = _quoted(column.name)
                yield f"array_to_string({name}, ' ')" if is_list else name


def _quoted(column: str) -> str:
    """Return the name of a column in double quotes, for SQL."""
    escaped = column.replace('"', '""')
    return f'"{escaped}"'


# What people read.


def rendered(audits: Mapping[str, Audited]) -> str:
    """Return the audits of configurations, by name, as Markdown for the card."""
    fitted = {rule.rule for audit in audits.values() for rule in audit.rules}
    values = {
        "audits": audits,
        "rules": {rule: what for rule, what in RULES.items() if rule in fitted},
        "released": released(),
        "sample": (TRAIN, TEST),
        "fewest": FEW,
        "alike": ALIKE,
    }
    return from_template("audit.md", values).strip()
