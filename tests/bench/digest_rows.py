"""Digests of all dataset rows of a build, and whether they are those of another one.

    python -m tests.bench.digest_rows build/sample [--against docs/results/rows-sample.json]

Of each file of rows: their number, a digest of the rows in their order, and one that does not
depend on the order.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq

Digest = tuple[int, str, str]


def digest(path: Path) -> Digest:
    """Number of rows, digest in order, digest of the bag."""
    ordered, bag = hashlib.sha256(), 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(1024):
            for row in batch.to_pylist():
                text = json.dumps(row, ensure_ascii=False, sort_keys=True, default=str)
                one = hashlib.sha256(text.encode()).digest()
                ordered.update(one)
                bag = (bag + int.from_bytes(one[:16], "big")) % (1 << 128)
        return file.metadata.num_rows, ordered.hexdigest()[:32], f"{bag:032x}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="a build's folder, with its datasets/")
    parser.add_argument("--against", type=Path, help="the digests of another build")
    options = parser.parse_args()
    files = sorted(options.build.glob("datasets/*/*/*.parquet"))
    found = {"/".join(path.parts[-3:]): digest(path) for path in files}
    if options.against is None:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
        return 0
    other = {key: tuple(value) for key, value in json.loads(options.against.read_text()).items()}
    differ = sorted(key for key in {*found, *other} if found.get(key) != other.get(key))
    for key in differ:
        one, two = found.get(key, (0, "", "")), other.get(key, (0, "", ""))
        how = "order" if one[2] == two[2] else f"{two[0]:,} rows before, {one[0]:,} now"
        sys.stdout.write(f"differs: {key} ({how})\n")
    sys.stdout.write(f"{len(found) - len(differ)} of {len(found)} files are equal\n")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
