"""Are the sentences of texts in the order of their author? Years and turns of phrase tell.

    python tests/bench/measure_order.py discoeval:DATA/discoeval/SP/wiki ...

Of two sentences of a text that name different years, the earlier year is mostly in the first one;
what opens an abstract ("We propose") stands before what ends it ("Finally"). In texts whose
sentences were shuffled, half the time. Prints both shares for each source.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from itertools import combinations

from corpora.readers import open_source

YEAR = re.compile(r"\b(1[5-9]\d\d|20[0-2]\d)\b")
OPENS = re.compile(r"\b(In this (paper|work|article)|We (present|propose|introduce|study))\b")
ENDS = re.compile(r"^(Finally|Lastly|In conclusion|We conclude|Furthermore|Moreover)\b")


def years(text: Sequence[str]) -> list[int]:
    return [int(found.group()) for found in map(YEAR.search, text) if found]


def parts(text: Sequence[str]) -> list[int]:
    """0 for a sentence that opens an abstract, 1 for one that ends it; others are left out."""
    return [bool(ENDS.search(s)) for s in text if OPENS.search(s) or ENDS.search(s)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+")
    for spec in parser.parse_args().sources:
        texts = [document.sentence_texts() for document in open_source(spec)]
        for name, signs in (("years", years), ("parts", parts)):
            pairs = [p for text in texts for p in combinations(signs(text), 2) if p[0] != p[1]]
            up = sum(first < second for first, second in pairs)
            share = f"{100 * up / len(pairs):.1f} %" if pairs else "none"
            found = f"{len(texts)} texts, {len(pairs)} pairs of {name}, in order: {share}"
            sys.stdout.write(f"{spec}: {found}\n")


if __name__ == "__main__":
    main()
