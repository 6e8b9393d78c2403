"""The suite `discoeval` from Python, for any encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from corpora.errors import InputError
from zoo.evaluate.discoeval.data import Found, read
from zoo.evaluate.discoeval.protocol import evaluate_all, inputs_under, load
from zoo.evaluate.encoders import Text, as_encoder
from zoo.evaluate.results import finished, save
from zoo.evaluate.suites import DiscoEval

DEFAULTS = DiscoEval(cache="")


def run(
    what: Any,
    data: str | Path,
    options: DiscoEval = DEFAULTS,
    *,
    name: str = "",
    split: str = "test",
    seed: int = 0,
    limit: int = 0,
    json: str | Path = "",
) -> dict[str, Any]:
    """Evaluate a model folder, an encoder, a function of texts, or arrays on `data`.

    With `json` the result is written there too, as `discorpora evaluate discoeval --json` does it:
    `discorpora compare` takes it, and tells by how much it differs from another one.

    A function takes a list of texts and returns `[texts, dim]`. Arrays are a mapping from text to
    vector, or one array whose rows are those of `texts(data, options, limit=limit)`.
    """
    found = read(str(data), options.tasks, limit=limit)
    model = str(what) if isinstance(what, str | Path) else ""
    if isinstance(what, np.ndarray):
        rows = _texts(found, options)
        if what.ndim != 2 or len(what) != len(rows):
            given = f"{len(what)} vectors" if what.ndim == 2 else f"an array {what.shape}"
            raise InputError(
                f"{given} for {len(rows)} texts",
                where="arrays",
                hint="take the rows of discoeval.texts(DATA, options, limit=...), with the same "
                "options and limit as here: [texts, dim]",
            )
        what = dict(zip(rows, what, strict=True))
    encoder = load(model, options) if model else as_encoder(what, name)
    result = evaluate_all(encoder, found, options, split, seed, limit)
    kept = finished(options, result, split=split, seed=seed, model=model)
    if json:
        save(options, Path(json), kept, result.outcomes)
    return kept


def texts(data: str | Path, options: DiscoEval = DEFAULTS, *, limit: int = 0) -> list[Text]:
    """The distinct texts (and, with the protocol `pairs`, pairs) that the suite has encoded."""
    return _texts(read(str(data), options.tasks, limit=limit), options)


def _texts(found: Found, options: DiscoEval) -> list[Text]:
    inputs = [inputs_under(data, options) for data in found.tasks]
    return list(dict.fromkeys(text for each in inputs for text in (*each.singles, *each.pairs)))
