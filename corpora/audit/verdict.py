"""The verdict of an audit: which rules do too well, and what to do about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corpora.audit import Audited, exceeded, released
from corpora.audit.rules import RuleScore
from corpora.errors import amount

LENGTHS = "lengths, letter case or final marks differ between the labels: make them alike"
WORDS = "single words tell the label: add texts from other sources, or balance the labels by topic"
ADVICE = {
    "surface": LENGTHS,
    "first": LENGTHS,
    "numbers": LENGTHS,
    "bag": WORDS,
    "bag_first": WORDS,
    "cohesion": "shared words tell the label: choose the changed sentences from closer texts",
    "quotes": "unbalanced quotation marks tell the label: keep each quotation in one piece",
    "row_order": "the rows are sorted by label: shuffle them",
    "columns": "the columns `position` and `order` tell the label: do not give them to a model",
    "position": "the place of the change is not even: draw it at random",
    "majority": "one label is too frequent: balance the labels",
}
"""What a rule that does too well says about a dataset, and what to change."""
DUPLICATES = 1.0
"""The per cent of duplicates from which on the verdict names them."""


def verdict(audits: Mapping[str, Audited]) -> list[str]:
    """Return the verdict on the configurations, as lines of text: faults, each with what to do."""
    faults = [f"{name}: {fault}" for name, audit in audits.items() for fault in _faults(audit)]
    remarks = [f"{name}: {remark}" for name, audit in audits.items() if (remark := _remark(audit))]
    if faults:
        title = f"Verdict: {amount(len(faults), 'finding')} to look at before you train or publish."
        ending = ["Change the data, then audit it again; or print these figures beside a model's."]
    elif any(audit.rules for audit in audits.values()):
        title = "Verdict: no finding. A model has to be better than the rules above."
        ending = []
    else:
        title, ending = "Verdict: none, since no rule was fitted.", []
    return [title, *(f"- {line}" for line in (*faults, *remarks)), *ending]


def _faults(audit: Audited) -> Iterator[str]:
    """Yield a line for each rule that does too well, and for each split with too many duplicates.

    A rule does too well if the interval of its accuracy lies above its accuracies on all released
    data of this kind (`exceeded`). Duplicates are too many from `DUPLICATES` per cent on.
    """
    for rule in audit.rules:
        if figures := exceeded(audit.kind, rule):
            others = ", ".join(f"{value} on {data}" for data, value in figures.items())
            yield f"{rule.rule} {_figure(rule)}, {others}: {ADVICE[rule.rule]}"
    for share in audit.duplicates:
        if share.value >= DUPLICATES:
            rows = f"{share.value} % of the {share.split} rows are {share.what}"
            yield f"{rows}: remove the copies"


def _remark(audit: Audited) -> str:
    """Return why no rule was fitted, or the best rule where no released data can be compared."""
    if audit.left_out:
        return f"not judged: {audit.left_out}"
    if released().get(audit.kind) or not audit.rules:
        return ""
    best = max(audit.rules, key=lambda rule: rule.low - rule.chance)
    if best.low <= best.chance:
        return "no rule is above chance; there are no released data of this kind to compare"
    figure = f"{best.rule} {_figure(best)} ({best.measure}), chance {best.chance}"
    return f"{figure}; no released data of this kind: look if {ADVICE[best.rule]}"


def _figure(rule: RuleScore) -> str:
    """Return the value of a rule with its interval."""
    return f"{rule.value} [{rule.low}, {rule.high}]"
