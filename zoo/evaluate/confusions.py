"""Do a model of unbalanced and one of balanced data confuse the same markers? (A.4)

    python -m zoo.evaluate.confusions UNBALANCED.json BALANCED.json --output STEM

The two files are results of the suite `dissent` on the same rows; the result is STEM.json, with
STEM.csv (one line a pair of markers), STEM.svg and STEM.png.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpora.errors import DiscorporaError, InputError
from corpora.store.atomic import read_json, write_json
from zoo.evaluate.confusion import save, write_table
from zoo.training.data import check_labels

PRIOR = 0.5
"""Added to each cell, so that a confusion that never happened has a logarithm."""


def compare(unbalanced: np.ndarray, balanced: np.ndarray) -> dict[str, Any]:
    """The regression of A.4 on two confusion matrices `[gold, predicted]` of counts.

    Each cell is the log share of its gold marker's rows. Those of the unbalanced model are
    predicted linearly from the log frequency of the marker that it answered; what is left, the
    residuals, predicts the balanced model's cells. `r2`, `f` with (1, cells - 2) degrees of
    freedom and `p` are of that second line. Markers without a gold row are left out.
    """
    from scipy.stats import f as f_distribution
    from scipy.stats import linregress

    present = (unbalanced.sum(1) > 0) & (balanced.sum(1) > 0)
    if present.sum() < 2:
        raise InputError("fewer than two markers have rows in both matrices")
    frequency = np.log(unbalanced.sum(1)[present])
    if np.ptp(frequency) == 0:
        raise InputError(
            "every marker has as many rows: nothing can be predicted from their frequency",
            hint="evaluate both models on rows with the frequencies of the texts",
        )
    first, second = _log_shares(unbalanced, present), _log_shares(balanced, present)
    answered = np.broadcast_to(frequency, first.shape).ravel()
    line = linregress(answered, first.ravel())
    residuals = first.ravel() - (line.intercept + line.slope * answered)
    found = linregress(residuals, second.ravel())
    r2, freedom = float(found.rvalue**2), len(residuals) - 2
    f = r2 / max(1 - r2, 1e-12) * freedom
    return {
        "r2": r2,
        "f": float(f),
        "freedom": [1, freedom],
        "p": float(f_distribution.sf(f, 1, freedom)),
        "slope": float(found.slope),
        "intercept": float(found.intercept),
        "frequency_r2": float(line.rvalue**2),
        "markers": np.flatnonzero(present).tolist(),
        "residuals": residuals.tolist(),
        "balanced": second.ravel().tolist(),
    }


def compare_results(unbalanced: Mapping[str, Any], balanced: Mapping[str, Any]) -> dict[str, Any]:
    """`compare` on two results of the suite `dissent`.

    Raises `InputError` if their markers differ or they are of other rows.
    """
    one, two = (result["metrics"]["confusion"] for result in (unbalanced, balanced))
    check_labels(one["classes"], two["classes"], "confusion", "first result", "second result")
    first, second = (np.array(found["gold_by_predicted"]) for found in (one, two))
    judged = [_judged_on(result) for result in (unbalanced, balanced)]
    if judged[0] != judged[1] or first.sum(1).tolist() != second.sum(1).tolist():
        raise InputError(
            "the two results are of different rows",
            where=" | ".join(judged) if judged[0] != judged[1] else "",
            hint="evaluate both models with the same --data, --split and --limit",
        )
    found = compare(first, second)
    names = [one["classes"][i] for i in found["markers"]]
    return {
        **found,
        "markers": names,
        "models": [result["model"]["name"] for result in (unbalanced, balanced)],
        "dataset": unbalanced.get("dataset", {}),
    }


def _judged_on(result: Mapping[str, Any]) -> str:
    about = result.get("dataset", {})
    data = (f"{key} {about.get(key, '?')}" for key in ("name", "config", "revision"))
    return f"{', '.join(data)}, split {result.get('split', '?')}"


def write_files(result: Mapping[str, Any], stem: Path) -> list[Path]:
    """`STEM.csv`, `STEM.svg`, `STEM.png`: the cells, and the line through them."""
    from matplotlib.figure import Figure

    names = result["markers"]
    cells = [(gold, answer) for gold in names for answer in names]
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("csv", "svg", "png")]
    rows = zip(cells, result["residuals"], result["balanced"], strict=True)
    header = ["gold", "predicted", "residual_unbalanced", "log_share_balanced"]
    write_table(files[0], header, ((*cell, f"{x:.6f}", f"{y:.6f}") for cell, x, y in rows))
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.add_subplot(
        xlabel="unbalanced: residual of the log share",
        ylabel="balanced: log share",
        title=f"R² = {result['r2']:.3f}, F(1,{result['freedom'][1]}) = {result['f']:.1f}, "
        f"p {_p(result['p'])}",
    )
    own = np.eye(len(names), dtype=bool).ravel()
    x, y = np.array(result["residuals"]), np.array(result["balanced"])
    axes.scatter(x[~own], y[~own], s=12, label="confused")
    axes.scatter(x[own], y[own], s=18, marker="s", label="right")
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, result["intercept"] + result["slope"] * ends, color="black", linewidth=1)
    axes.legend()
    save(figure, files[1:])
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m zoo.evaluate.confusions", description=__doc__)
    parser.add_argument("unbalanced", type=Path)
    parser.add_argument("balanced", type=Path)
    parser.add_argument("--output", type=Path, required=True, help="files STEM.json, .csv, ...")
    options = parser.parse_args(arguments)
    try:
        results = [_read(path) for path in (options.unbalanced, options.balanced)]
        found = compare_results(*results)
    except (DiscorporaError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    write_files(found, options.output)
    write_json(options.output.with_name(f"{options.output.name}.json"), found)
    return 0


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError("no such file", where=str(path), hint="give results of the suite dissent")
    result = read_json(path)
    if not isinstance(result, dict) or "confusion" not in result.get("metrics", {}):
        raise InputError(
            "holds no confusion matrix",
            where=str(path),
            hint="make it with: discorpora evaluate dissent --model MODEL --data DATA --json FILE",
        )
    return result


def _log_shares(counts: np.ndarray, present: np.ndarray) -> np.ndarray:
    cells = counts[np.ix_(present, present)] + PRIOR
    return np.log(cells / cells.sum(1, keepdims=True))


def _p(value: float) -> str:
    return "< 0.001" if value < 1e-3 else f"= {value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
