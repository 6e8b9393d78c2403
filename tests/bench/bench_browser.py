"""Speed of the example browser: a filter over 100,000 pairs in headless Chromium.

    python -m tests.bench.bench_browser [--rows 100000] [--times 5]

Each search and filter is timed in the page, layout included, from the event to the list that shows
what was found. Beside it: the same filter, and an element for each row that it finds. Prints one
JSON object: milliseconds, the median of the times, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from corpora.audit.data import Configuration
from corpora.schemas import DISSENT, MARKERS_ALL
from corpora.store.rows import write_parquet
from tests.chromium import chromium
from workflows.report.browser import BrowsedDataset
from workflows.report.page import write_browser

WORDS = 8_000
CHANGES = {
    "word": "set('least', 0), set('query', 'w77o')",
    "two words": "set('query', 'w1o w2o')",
    "phrase": "set('query', '\\u201cw1ord w2ord\\u201d')",
    "marker": "set('query', ''), set('marker', 2)",
    "marker and word": "set('query', 'w77o')",
    "all": "set('query', ''), set('marker', -1)",
    "confidence": "set('least', .9)",
}
TIMED = """
(() => {
  function set(name, value) {
    const id = document.getElementById(name);
    const control = id || document.querySelector(`[data-facet="${name}"]`);
    control.value = value;
    control.dispatchEvent(new Event("input", {bubbles: true}));
  }
  const list = document.getElementById("list"), start = performance.now();
  CHANGE;
  list.getBoundingClientRect();
  const ours = performance.now() - start;
  const found = list.firstChild.clientHeight / 84, box = document.createElement("div");
  document.body.append(box);
  const again = performance.now();
  for (let n = 0; n < found; n += 1) {
    const row = document.createElement("div");
    row.textContent = list.firstChild.textContent.slice(0, 120);
    box.append(row);
  }
  box.getBoundingClientRect();
  const plain = ours + performance.now() - again;
  box.remove();
  return [ours, plain, Math.round(found)];
})()
"""


def synthetic(rows: int, folder: Path, **texts: str) -> pa.Table:
    """Write a page of that many pairs of made-up words into `folder`; returns the pairs.

    `texts` replace columns of the first row.
    """
    random = np.random.default_rng(0)
    numbers = np.minimum(random.zipf(1.3, (rows, 24)), WORDS)
    sides = [
        [" ".join(f"w{n}ord" for n in row) for row in part] for part in np.split(numbers, 2, 1)
    ]
    columns = {
        "doc": [f"document {row // 40}" for row in range(rows)],
        "group": [f"group {row // 4_000}" for row in range(rows)],
        "marker_start": np.arange(rows, dtype=np.int32),
        "s1": sides[0],
        "s2": sides[1],
        "label": random.integers(0, len(MARKERS_ALL), rows),
        "position": ["same_sentence"] * rows,
        "order": random.choice(["s1_first", "s2_first"], rows),
        "s2_added": [""] * rows,
        "confidence": random.random(rows),
    }
    for column, text in texts.items():
        columns[column] = [text, *columns[column][1:]]
    table = pa.table(columns, schema=DISSENT)
    file = folder.with_suffix(".parquet")
    write_parquet(file, table.to_batches(), DISSENT)
    pairs = Configuration({"train": pads.dataset(file)})
    write_browser(BrowsedDataset("synthetic", {"default": pairs}), folder)
    return table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    chosen = parser.parse_args(arguments)
    with TemporaryDirectory() as place:
        folder = Path(place, "page")
        folder.mkdir()
        synthetic(chosen.rows, folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        figures: dict[str, object] = {"rows": chosen.rows, "MiB": round(size / 2**20, 1)}
        with chromium(Path(place, "profile")) as page:
            page.open(folder / "index.html")
            page.until(
                f"document.getElementById('count').textContent.startsWith('{chosen.rows:,}')"
            )
            figures["loaded"] = round(page.run("performance.now()"))
            runs = [
                {
                    name: page.run(TIMED.replace("CHANGE", change))
                    for name, change in CHANGES.items()
                }
                for _ in range(chosen.times)
            ]
        for name in CHANGES:
            ours, plain, found = (
                float(np.median([run[name][i] for run in runs])) for i in range(3)
            )
            times = {"ms": round(ours, 1), "with all rows": round(plain, 1), "found": int(found)}
            figures[name] = {**times, "ratio": round(ours / plain, 3)}
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
