"""Tokenizers trained on a dataset, and word vectors from GloVe's text files for their words."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch.nn import Embedding
from transformers import BertTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from corpora.errors import ConfigError, InputError
from zoo.declared import WordRecipe

log = logging.getLogger("zoo")

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
ENDS = ("<s>", "</s>")
"""The tokens at a text's start and end."""


def train_words(
    texts: Iterable[str],
    vocab_size: int,
    *,
    min_frequency: int = 1,
    lower: bool = True,
    ends: bool = False,
) -> PreTrainedTokenizerFast:
    """Return a tokenizer of the `vocab_size` most frequent words and punctuation marks of `texts`.

    Id 0 is padding, id 1 stands for every other word. Words of equal frequency are in alphabetical
    order. With `ends` each text stands between `<s>` and `</s>`.
    """
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNK))
    tokenizer.normalizer = _normalizer(lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=[PAD, UNK, *(ENDS if ends else ())],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if ends:
        end_ids = [(token, tokenizer.token_to_id(token)) for token in ENDS]
        single = f"{ENDS[0]} $A {ENDS[1]}"
        tokenizer.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=end_ids
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, unk_token=UNK)


def words_for(
    recipe: WordRecipe, texts: Iterable[str], *, ends: bool = False
) -> PreTrainedTokenizerFast:
    """Return the tokenizer that `train_words` trains on `texts` with a recipe's settings."""
    frequency = recipe.min_frequency
    tokenizer = train_words(
        texts, recipe.vocab_size, min_frequency=frequency, lower=recipe.lower, ends=ends
    )
    tokenizer.model_max_length = recipe.max_tokens
    return tokenizer


def train_subwords(
    texts: Iterable[str], vocab_size: int, *, lower: bool = True, max_length: int = 512
) -> PreTrainedTokenizerFast:
    """Return a tokenizer of subwords (byte-level BPE, `[CLS] text [SEP]`), trained on `texts`.

    BPE, since its trainer gives the same result in every process; the WordPiece trainer of
    tokenizers 0.23 numbers its `##` letters in an order that changes from process to process.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = _normalizer(lower)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, UNK, CLS, SEP, MASK],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    end_ids = [(token, tokenizer.token_to_id(token)) for token in (CLS, SEP)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A {SEP}", pair=f"{CLS} $A {SEP} $B:1 {SEP}:1", special_tokens=end_ids
    )
    names = {"pad": PAD, "unk": UNK, "cls": CLS, "sep": SEP, "mask": MASK}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_length,
        **{f"{name}_token": token for name, token in names.items()},
    )


def keep_frequent_pieces(
    backbone: Any, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], words: int
) -> BertTokenizer:
    """Keep in an uncased BERT only the `words` word pieces that are most frequent in `texts`.

    Changes the `backbone` and its configuration, and returns its new tokenizer. Every letter of
    ASCII stays in the vocabulary, so that English words always have pieces.
    """
    # Count the word pieces in the texts.
    counts: Counter[int] = Counter()
    for start in range(0, len(texts), 1024):
        part = list(texts[start : start + 1024])
        for ids in tokenizer(part, add_special_tokens=False, verbose=False).input_ids:
            counts.update(ids)
    # Choose the most frequent ones, after special tokens and single characters.
    pieces = {number: piece for piece, number in tokenizer.get_vocab().items()}
    required = [
        number
        for number, piece in sorted(pieces.items())
        if number in tokenizer.all_special_ids
        or (len(piece.removeprefix("##")) == 1 and piece.isascii())
    ]
    by_frequency = sorted(counts, key=lambda number: (-counts[number], number))
    chosen = sorted(list(dict.fromkeys([*required, *by_frequency]))[:words])
    vocabulary = {pieces[number]: place for place, number in enumerate(chosen)}
    # The encoder with this vocabulary
    small = BertTokenizer(vocab=vocabulary, model_max_length=tokenizer.model_max_length)
    vectors = backbone.embeddings.word_embeddings.weight[chosen].detach().clone()
    backbone.resize_token_embeddings(len(chosen))
    backbone.embeddings.word_embeddings.weight.data = vectors
    backbone.config.vocab_size = len(chosen)
    backbone.config.pad_token_id = small.pad_token_id
    share = sum(counts[number] for number in chosen) / counts.total()
    log.info("%d word pieces, %.2f %% of those used", len(chosen), 100 * share)
    return small


def _normalizer(lower: bool) -> normalizers.Normalizer:
    """Return a normalizer of texts: Unicode's form NFC, and lower case if `lower`."""
    steps = [normalizers.NFC(), *([normalizers.Lowercase()] if lower else [])]
    return normalizers.Sequence(steps)


def read_glove(path: Path, vocabulary: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Read from a GloVe text file the vectors of words in `vocabulary`, which maps words to ids.

    Returns the ids `[words]` of the words that the file has, sorted, and their vectors
    `[words, size]`. Raises `InputError` for a file with a line of another size, or none of the
    words, and `OSError` for one that is absent.
    """
    size = 0
    vectors: dict[int, np.ndarray] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not size:
                if len(line.split()) == 2:
                    continue  # the header of word2vec's text form
                size = len(line.split()) - 1
            # Some words of GloVe 840B hold spaces: the numbers are the last fields.
            # word2vec and fastText end each line with a blank.
            word, *numbers = line.rstrip().rsplit(" ", size)
            if word in vocabulary:
                try:
                    vector: np.ndarray = np.array(numbers, np.float32)
                except ValueError:
                    vector = np.zeros(0, np.float32)
                if len(vector) != size or not np.isfinite(vector).all():
                    problem = f"not a word and {size} finite numbers, as the first line has them"
                    raise InputError(problem, where=f"{path}:{number}")
                vectors[vocabulary[word]] = vector
    if not vectors:
        hint = "give a text file of word vectors; if it is packed (.zip, .gz), unpack it"
        raise InputError("has no word of this vocabulary", where=str(path), hint=hint)
    ids = sorted(vectors)
    return np.array(ids, np.int64), np.stack([vectors[word] for word in ids])


def load_vectors(
    table: Embedding,
    tokenizer: PreTrainedTokenizerBase,
    path: Path,
    deviation: float,
    *,
    drop_unknown: bool = False,
) -> str:
    """Copy the word vectors of a GloVe file into an embedding table, for the tokenizer's words.

    Words that the file lacks keep the table's random vectors: their standard deviation, which is
    `deviation`, is scaled to that of the file. With `drop_unknown` they become zero, except those
    of `<s>` and `</s>`. Returns a note of how many words have a vector. Raises `ConfigError` for
    vectors of another size.
    """
    ids, vectors = read_glove(path, tokenizer.get_vocab())
    weight = table.weight
    if vectors.shape[1] != weight.shape[1]:
        raise ConfigError(
            f"the vectors have {vectors.shape[1]} numbers, embedding_size is {weight.shape[1]}",
            where=str(path),
            hint=f"set embedding_size = {vectors.shape[1]}",
            field="embedding_size",
        )
    with torch.no_grad():
        weight.mul_(float(vectors.std()) / deviation)
        if drop_unknown:
            ends = tokenizer.convert_tokens_to_ids(list(ENDS))
            end_vectors = weight[ends]
            weight.zero_()
            weight[ends] = end_vectors
        weight[torch.from_numpy(ids)] = torch.from_numpy(vectors)
    return f"{len(ids)} of {len(tokenizer)} words have a vector in {path.name}"
