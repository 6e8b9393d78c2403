"""Tokenizers trained on a dataset, for models that start without a pretrained one."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"


def train_words(
    texts: Iterable[str], vocab_size: int, *, min_frequency: int = 1, lower: bool = True
) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words and punctuation marks, the most frequent `vocab_size` of them.

    Id 0 is padding, id 1 stands for every other word. Words of equal frequency rank by letter.
    """
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNK))
    tokenizer.normalizer = _normalizer(lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=[PAD, UNK],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, unk_token=UNK)


def train_subwords(
    texts: Iterable[str], vocab_size: int, *, lower: bool = True, max_length: int = 512
) -> PreTrainedTokenizerFast:
    """A tokenizer of subwords (byte-level BPE): `[CLS] text [SEP]`, no unknown tokens.

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
    ends = [(token, tokenizer.token_to_id(token)) for token in (CLS, SEP)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A {SEP}", pair=f"{CLS} $A {SEP} $B:1 {SEP}:1", special_tokens=ends
    )
    names = {"pad": PAD, "unk": UNK, "cls": CLS, "sep": SEP, "mask": MASK}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_length,
        **{f"{name}_token": token for name, token in names.items()},
    )


def _normalizer(lower: bool) -> normalizers.Normalizer:
    steps = [normalizers.NFC(), *([normalizers.Lowercase()] if lower else [])]
    return normalizers.Sequence(steps)
