"""The tokenizer of the link scorer: texts as their sentences, in a file that needs no discorpora.

The scorer's folder has a copy, for `AutoTokenizer.from_pretrained(FOLDER, trust_remote_code=True)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BatchEncoding, PreTrainedTokenizerFast

from .windows import years_ascend

try:  # in discorpora
    from corpora.quotes import balance_quotes
    from corpora.sentences.rules import Language, sentence_spans
except ImportError:  # in the folder of a model, which has copies of both
    from .quotes import balance_quotes  # type: ignore[import-not-found, no-redef]
    from .rules import Language, sentence_spans  # type: ignore[import-not-found, no-redef]

BLANK_LINE = "\n\n"


class SentenceTokenizer(PreTrainedTokenizerFast):
    """Encodes a text sentence by sentence, each with its special tokens, and does not cut it.

    `sentence_words` has the word lists of the splitter (`Language`). A text pair is one text: the
    sentences of both.
    """

    def __call__(self, text: Any = None, text_pair: Any = None, **kwargs: Any) -> BatchEncoding:
        """Return the tensors of `encode_sentences` for a text, or for a list of texts or of pairs.

        Settings of padding and truncation are ignored.
        """
        texts = [text] if isinstance(text, str) else list(text)
        if text_pair is not None:
            others = [text_pair] if isinstance(text_pair, str) else text_pair
            texts = list(zip(texts, others, strict=True))
        parts = [(one,) if isinstance(one, str) else one for one in texts]
        return self.encode_sentences(
            [[sentence for part in pair for sentence in self.sentences(part)] for pair in parts]
        )

    @cached_property
    def language(self) -> Language:
        return Language.of(self.init_kwargs["sentence_words"])

    def sentences(self, text: str | Sequence[str]) -> list[str]:
        """Return the sentences of a text, with white space folded and quotation marks in pairs.

        A blank line ends a paragraph. A text may be a list of sentences, which is not split.
        """
        if not isinstance(text, str):
            return [balance_quotes([sentence])[0] for sentence in text]
        starts, start = list[tuple[int, int]](), 0
        for paragraph in text.split(BLANK_LINE):
            starts.append((start, start + len(paragraph)))
            start += len(paragraph) + len(BLANK_LINE)
        return [
            sentence
            for spans in sentence_spans(text, starts, self.language)
            for sentence in balance_quotes([" ".join(text[a:b].split()) for a, b in spans])
        ]

    def encode_sentences(self, texts: Sequence[Sequence[str]]) -> BatchEncoding:
        """Return texts (lists of sentences) as tensors, padded on the right.

        `input_ids`, `attention_mask` and `token_type_ids` are `[texts, tokens]`; the last has 0 and
        1 in turn for the sentences of a text. `years [texts, 1]` is `years_ascend`.
        """
        rows, types = [], []
        for text in texts:
            ids = super().__call__(list(text) or [""], verbose=False)["input_ids"]
            rows.append(torch.tensor([token for sentence in ids for token in sentence]))
            numbers = [i % 2 for i, sentence in enumerate(ids) for _ in sentence]
            types.append(torch.tensor(numbers))
        tensors = {
            "input_ids": pad_sequence(rows, True, float(self.pad_token_id)),
            "attention_mask": pad_sequence([torch.ones_like(row) for row in rows], True),
            "token_type_ids": pad_sequence(types, True),
            "years": torch.tensor([[years_ascend(text)] for text in texts]),
        }
        return BatchEncoding(tensors)
