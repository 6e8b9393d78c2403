"""Tiny BERT, XLNet and RoBERTa folders of random weights, and a GloVe file."""

from __future__ import annotations

import random
from pathlib import Path

from tests.miniature.prose import DID, INSIDE, KIND, WHAT, WHERE, WHO, Prose
from tests.zoo.families import write_family

BACKBONES = {
    "bert-base-uncased": "bert",
    "bert-large-uncased": "bert",
    "bert-base-cased": "bert",
    "roberta-base": "roberta",
    "xlnet-base-cased": "xlnet",
}
WIDTH = 16
"""Dimensions of the GloVe file, whose real one has 300."""


def write_backbones(folder: Path, seed: int = 8) -> None:
    texts = [s.tokenised for s in Prose(seed).paragraph(200)]
    texts = [form for text in texts for form in (text, text.lower())]
    for name, family in BACKBONES.items():
        write_family(folder / "backbones" / name, family, texts)
    rng = random.Random(seed)
    words = dict.fromkeys(
        [*WHO, *KIND, *DID, *WHAT, *INSIDE, *" ".join(WHERE).split(), "the", ".", ","]
    )
    lines = (
        " ".join([word, *(f"{rng.gauss(0, 0.4):.5f}" for _ in range(WIDTH))]) for word in words
    )
    (folder / "glove.840B.300d.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
