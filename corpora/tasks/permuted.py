"""Permuted documents (Jwalapuram, Joty, Lin 2022, section 2.1), stored as orders.

The sentences stand once, in the configuration `documents`; a negative is an order of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field

from corpora.document import Document
from corpora.errors import ConfigError, InputError
from corpora.prose import Quotes, passages_of, prose
from corpora.quotes import balance_quotes, quotes_at_ends
from corpora.schemas import PERMUTED_DOCUMENTS, PERMUTED_ORDERS, PERMUTED_PAIRWISE
from corpora.splits import SPLITS
from corpora.store.atomic import sha256
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Candidate, Part, Prescribed, Reject
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside
from corpora.tasks.permutations import LARGEST, document_keys, order_rows

DOCUMENTS_PER_BATCH = 256
CountTokens = Callable[[Sequence[str]], list[int]]
ROWS_PER_GROUP = {"pairwise": 16_384, "contrastive": 8_192, "ranked": 1_024}


class Permuted(Prescribed):
    """Documents and permutations of their sentences, stored as orders."""

    name, version = "permuted", 8
    paper = "Jwalapuram, Joty and Lin 2022, section 2.1"
    card = card_beside(__file__, "permuted")
    gives = {
        "documents": PERMUTED_DOCUMENTS,
        "pairwise": PERMUTED_PAIRWISE,
        **dict.fromkeys(("contrastive", "ranked"), PERMUTED_ORDERS),
    }
    default = "documents"
    columns = pa.schema(
        [
            *(PERMUTED_DOCUMENTS.field(name) for name in ("id", "sentences")),
            ("quoted", pa.int32()),
            ("of_whole", pa.bool_()),
        ]
    )
    equal = ("sentences", "of_whole")
    ascending = (("min_sentences", "block_size", "block_from"), ("min_ranked", "ranked"))

    quotes: Quotes = "balance"
    """`balance`: each sentence gets paired quotation marks, since unpaired ones show the order;
    `keep`: as written."""
    speech: Literal["keep", "move"] = "keep"
    """`keep`: a sentence takes only places of its kind (speech, narration, or both in one), since
    speech beside speech tells the order; `move`: any place, as in the paper."""
    lines: Literal["prose", "all"] = "prose"
    """`prose`: without headings, captions, author and date lines, and with a sentence that
    announces the next one joined to it; `all`: the sentences as they are, as in the paper."""
    whole: tuple[Literal["train", "validation", "test"], ...] = ()
    """Splits whose documents, of two sentences or more, are neither cut into blocks nor at
    `max_tokens`: `["test"]` in the paper."""
    min_sentences: Annotated[int, Field(ge=2)] = 4
    """Minimum sentences of a document or block."""
    block_from: Annotated[int, Field(le=LARGEST + 1)] = 20
    """Documents with this many sentences or more are cut into blocks."""
    block_size: int = 10
    """Sentences of a block."""
    max_tokens: Annotated[int, Field(ge=1)] = 600
    """Maximum length of a document, cut at a sentence."""
    tokenizer: str = "words"
    """What counts tokens: `words` (at white space), the path of a `tokenizer.json`, or the
    tokenizer of a Hub id."""
    repetitions: Annotated[int, Field(ge=1, le=255)] = 20
    """Maximum rows of a document."""
    contrastive: Annotated[int, Field(ge=1)] = 5
    """Negatives of a row of `contrastive`."""
    ranked: Annotated[int, Field(ge=1)] = 50
    """Negatives of a row of `ranked`."""
    min_ranked: Annotated[int, Field(ge=1)] = 5
    """Minimum negatives of a row of `ranked`."""
    train: Part = 0.8
    validation: Part = 0.1
    test: Part = 0.1

    def identity(self) -> dict[str, Any]:
        """Return the settings as `Prescribed.identity` does, and a digest of the tokenizer file."""
        path = Path(self.tokenizer)
        digest = sha256(path) if path.is_file() else ""
        return {**super().identity(), "tokenizer_sha256": digest}

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield the positives of one document: the document, or its blocks if it is long.

        With the setting `whole`, the uncut document is yielded too: its split is not known yet, and
        `select` keeps one of the two forms.
        """
        if self.lines == "all":
            texts: list[str | None] = [*document.sentence_texts()]
            originals = set(texts)
            if self.quotes == "balance":
                texts = [
                    *chain.from_iterable(
                        map(balance_quotes, passages_of(document, texts, "paragraph"))
                    )
                ]
        else:
            texts, originals = prose(document, self.quotes), set(prose(document))
        sentences = [text for text in texts if text]
        for _ in range(texts.count("")):
            reject("no_sentence")

        def positive(id: str, texts: list[str], of_whole: bool) -> Candidate:
            return Candidate((id, texts, sum(text not in originals for text in texts), of_whole))

        in_blocks = len(sentences) >= self.block_from
        size = self.block_size if in_blocks else max(1, len(sentences))
        count = token_counter(self.tokenizer)
        for number, start in enumerate(range(0, len(sentences), size)):
            block = sentences[start : start + size]
            lengths = accumulate(count(block))
            cut_block = block[: sum(length <= self.max_tokens for length in lengths)]
            if len(cut_block) >= self.min_sentences:
                id = f"{document.id}#{number}" if in_blocks else document.id
                yield positive(id, cut_block, False)
            else:
                reject(
                    "too_few_sentences" if len(cut_block) == len(block) else "sentences_too_long"
                )
        # Last: the priorities of the others are then the same without it.
        if self.whole and len(sentences) > LARGEST:
            reject("too_many_sentences")
        elif self.whole and len(sentences) > 1:
            yield positive(document.id, sentences, True)

    def select(self, candidates: Candidates) -> None:
        """Split as `Prescribed.select` does; then keep in each split one form of its documents.

        A split of the setting `whole` keeps whole documents, the other splits keep the cut ones.
        """
        super().select(candidates)
        if self.whole:
            candidates.engine.run(_DROP_OTHER_FORM, {"whole": list(self.whole)})

    def rows(self, config: str, distinct: int) -> tuple[int, int]:
        """Return the number of rows of a document in `config`, and of negatives in each row.

        `distinct` is the number of its different orders, the original included.
        """
        negatives = {"pairwise": 1, "contrastive": self.contrastive, "ranked": self.ranked}[config]
        rows = min(self.repetitions, (distinct - 1) // negatives)
        if config == "ranked" and not rows and distinct - 1 >= self.min_ranked:
            return 1, distinct - 1
        return rows, negatives

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write the original documents once, and their orders in each further configuration."""
        for id, source in candidates.engine.rows(_REPEATED_IDS):
            raise InputError(
                f"two positives have the id {id!r}",
                where=source,
                hint="long documents are cut into blocks DOCUMENT#NUMBER; give the document "
                "that has such an id another one",
            )
        candidates.note_quoted()
        target = candidates.target
        for split in SPLITS:
            positives = dataset.writer("documents", split, PERMUTED_DOCUMENTS, texts=("sentences",))
            for batch in candidates.of_split(split, size=DOCUMENTS_PER_BATCH):
                candidates.write(positives, [batch])
                ids, sentences = batch["id"].to_pylist(), batch["sentences"].to_pylist()
                for config, size in ROWS_PER_GROUP.items():
                    keys = document_keys(target.seed, f"{target.stage.name}/{config}", ids)
                    kind = quotes_at_ends if self.speech == "keep" else None
                    rows = order_rows(keys, ids, sentences, partial(self.rows, config), kind)
                    if rows is not None:
                        schema = self.gives[config]
                        writer = dataset.writer(config, split, schema, rows_per_group=size)
                        writer.append(rows)


_DROP_OTHER_FORM = """
delete from kept using candidate
where kept.part = candidate.part and kept.doc = candidate.doc and kept.number = candidate.number
    and of_whole != list_contains($whole, kept.split)
"""

_REPEATED_IDS = """
select id, max(source)
from candidate join documents using (part, doc)
group by id, of_whole having count(*) > 1 order by id limit 1
"""


@cache
def token_counter(tokenizer: str) -> CountTokens:
    """Return a function from sentences to their numbers of tokens.

    `tokenizer` is the setting of `Permuted`. Raises `ConfigError` if it cannot be loaded.
    """
    if tokenizer == "words":
        return lambda texts: [len(text.split()) for text in texts]
    from tokenizers import Tokenizer

    load = Tokenizer.from_file if Path(tokenizer).is_file() else Tokenizer.from_pretrained
    try:
        loaded = load(tokenizer)
        # A file may ask for both, and each sentence would count as long as the model's input.
        loaded.no_padding()
        loaded.no_truncation()
    except Exception as error:  # the library raises bare `Exception` for all its failures
        raise ConfigError(
            f"no tokenizer {tokenizer!r}: {error}",
            hint='"words", the path of a tokenizer.json, or the id of a model on the Hub',
        ) from error
    return lambda texts: [
        len(encoding.ids) for encoding in loaded.encode_batch(texts, add_special_tokens=False)
    ]
