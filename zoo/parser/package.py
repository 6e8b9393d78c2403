"""What the recipe leaves on disk: one folder with pipeline, document ids and provenance."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from spacy.language import Language

from zoo.parser.treebank import Sentence

NAME = "en_ud_compact"
META = {"name": "ud_compact", "version": "1.1.1", "license": "CC-BY-SA-4.0"}
MIN_COUNT = 3


def write_output(
    nlp: Language, train: Sequence[Sentence], record: dict[str, object], output: Path
) -> None:
    """`output` with `en_ud_compact/`, `documents.txt`, `training.json`; appears by one rename."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as temporary:
        folder = Path(temporary) / output.name
        folder.mkdir()
        save(nlp, learn_upos(train), folder / NAME)
        names = dict.fromkeys(sentence.document for sentence in train)
        (folder / "documents.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
        write_json(folder / "training.json", record)
        folder.replace(output)


def save(nlp: Language, upos: dict[str, str], folder: Path) -> None:
    """`nlp.to_disk` with the UPOS table beside it, and only the strings that loading needs."""
    nlp.meta.update(META)
    nlp.to_disk(folder)
    labels = {label for name in ("tagger", "parser") for label in nlp.pipe_labels[name]}
    names = labels | {part for key, value in upos.items() for part in (*key.split(" "), value)}
    # Hashed embeddings need no word list; what the tokenizer needs it adds itself.
    write_json(folder / "vocab" / "strings.json", sorted(names | {"ROOT", "root", "dep"}))
    write_json(folder / "upos.json", upos)


def learn_upos(sentences: Iterable[Sentence]) -> dict[str, str]:
    """The majority UPOS of each key `xpos`, `xpos deprel`, `xpos deprel form`.

    The longest key that the table has decides, so a longer key is kept only where it changes the
    answer of the shorter one, and only with at least `MIN_COUNT` tokens.
    """
    votes: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        columns = zip(sentence.xpos, sentence.deprels, sentence.forms, sentence.upos, strict=True)
        for xpos, deprel, form, upos in columns:
            for level in ((xpos,), (xpos, deprel), (xpos, deprel, form.lower())):
                votes[level][upos] += 1
    table: dict[tuple[str, ...], str] = {}
    for key in sorted(votes, key=len):
        counts = votes[key]
        best = min(counts, key=lambda upos: (-counts[upos], upos))
        answer = table.get(key[:2], table.get(key[:1]))
        if len(key) == 1 or (counts.total() >= MIN_COUNT and best != answer):
            table[key] = best
    return {" ".join(key): table[key] for key in sorted(table, key=" ".join)}


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
