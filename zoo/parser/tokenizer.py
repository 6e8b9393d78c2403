"""Adapts spaCy's English tokenizer to a treebank's words: by patterns, then by learnt cases."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from spacy.attrs import ORTH
from spacy.language import Language
from spacy.util import compile_infix_regex, compile_prefix_regex, compile_suffix_regex

from zoo.parser.treebank import Sentence

Pieces = tuple[str, ...]
"""The tokens into which a string between blanks is split."""

# UD keeps a bound prefix and its word together (non-lexical) and splits other hyphenated words.
BOUND = "anti co counter cross e ex inter mid mini multi non post pre pro re semi sub ultra"
AFTER_FREE = "".join(rf"(?<!\b(?i:{prefix}))" for prefix in BOUND.split())
CLITIC = r"(?:['’](?:s|ll|ve|re|d|m|LL|VE|RE)|n['’]t|N['’]T)"
RUNS = [r"\.?[!?]{2,}", r"\.{2,}", r"={2,}", r"_{2,}", r"\*{2,}", r"<{2,}", r">{2,}"]
MARKS = [*RUNS, "—", "―", r"-{2,}", "``", "''", "‘’"]
PREFIXES = [*MARKS, r"-(?=[A-Za-z]{3})"]
SUFFIXES = [
    *MARKS,
    r"\.[!?]",
    r"(?<=[A-Za-z]{2})-",
    r"(?<=[a-z][A-Z])\.",
    r"(?<=\d)[ap](?:m|\.m\.)",
    r"(?<=\d)(?:AM|PM|[kKxbM]|mins?|hrs?|lbs?)",
    rf"(?<=[A-Za-z]){CLITIC}",
]
INFIXES = [
    rf"(?<=[A-Za-z]){CLITIC}(?=—|―|--)",  # a piece between infixes is not split further
    r"(?:[!?]+|[,.;:)’”])(?=[)’”\"]*(?:—|―|--))",
    *("—", "―", r"--+", "…", r"\.{3,}", r'["“”]'),
    r"(?<=\d)–(?=\d)",
    rf"(?<=[A-Za-z]){AFTER_FREE}-(?=\d)",
    r"(?<=[A-Za-z]\.)-(?=[A-Za-z])",
    r"(?<=\d),(?=\d)(?!\d{3}(?!\d))",
    r"(?<=[a-z]{2})\.(?=[A-Z][a-z])",
    r"(?<=[a-z]{2})[!?;)](?=[A-Z]?[a-z]{2})",
    r"(?<=[A-Za-z])\((?=[a-z]{2})",
]
WHOLE = [
    r"(?:\+?\d{1,3}-)?\d{3}-\d{3}-\d{4}",  # telephone numbers
    r"\d{3}-\d{4}",
    r"\d{1,2}-\d{1,2}-(?:\d\d)?\d\d",  # dates
    r"(?:[12]\d)?\d0['’]s",  # decades
    r"<[a-z]+>",  # what corpora write for a word that they left out: <unk>, <user>
]
# special cases that harm more than they help
SPOILERS = ["):", "(=", ");", "Id", "id", "Wed", "wed"]
# `("Hello!")` without its outer quotes and brackets
OUTER = re.compile(r"""^["'“‘(\[<]*(.*?)["'”’)\],;:!?>]*$""", re.DOTALL)
# `wanna`, `and/or`, `Ft.`
LETTERS = re.compile(r"[A-Za-z]+(?:[.'’/&-][A-Za-z]*)*")
MIN_DOCUMENTS = 3


def adapt_tokenizer(nlp: Language, train: Sequence[Sentence]) -> None:
    """Change the tokenizer of `nlp` so that it splits text as the gold tokens of `train` do."""
    tokenizer: Any = nlp.tokenizer
    defaults: Any = nlp.Defaults
    # spaCy's pattern for a hyphen between letters is the one that lists the dashes.
    infixes = [AFTER_FREE + text if "-|–|—|--" in text else text for text in defaults.infixes]
    tokenizer.prefix_search = compile_prefix_regex([*PREFIXES, *defaults.prefixes]).search
    tokenizer.suffix_search = compile_suffix_regex([*SUFFIXES, *defaults.suffixes]).search
    tokenizer.infix_finditer = compile_infix_regex([*INFIXES, *infixes]).finditer
    tokenizer.token_match = re.compile("|".join(f"^{pattern}$" for pattern in WHOLE)).match
    rules, tokenizer.rules = tokenizer.rules, {}
    # Special cases are left out if the patterns give the same tokens, since spaCy does not cache
    # strings with special cases. NORM ("n't" to "not") is left out too: it is a feature of the
    # parser, and a form would have another norm in raw text than in the treebank.
    tokenizer.rules = {
        text: [{ORTH: token[ORTH]} for token in tokens]
        for text, tokens in rules.items()
        if text not in SPOILERS
        and [token[ORTH] for token in tokens] != [token.text for token in tokenizer(text)]
    }

    # Strings that most documents split in another way than the tokenizer (and|/|or, Ft., wan|na)
    votes: dict[str, Counter[Pieces]] = defaultdict(Counter)
    for _, members in groupby(train, key=lambda sentence: sentence.document):
        for text, pieces in set(_chunks(members)):
            votes[text][pieces] += 1
    cases: dict[str, Pieces] = {}
    for text, counter in votes.items():
        pieces, count = counter.most_common(1)[0]
        is_usual = count >= MIN_DOCUMENTS and 2 * count > counter.total()
        if is_usual and pieces != tuple(token.text for token in tokenizer(text)):
            cases[text] = pieces
    for text, pieces in sorted(cases.items()):
        tokenizer.add_special_case(text, [{ORTH: piece} for piece in pieces])


def _chunks(sentences: Iterable[Sentence]) -> Iterator[tuple[str, Pieces]]:
    """Yield each string between blanks in gold sentences, with the tokens into which it is split.
    Outer quotes and brackets are left out, and strings with more than letters and joining marks."""
    pieces: list[str] = []
    for sentence in sentences:
        for form, space in zip(sentence.forms, sentence.spaces, strict=True):
            pieces.append(form)
            if not space:
                continue
            text = "".join(pieces)
            match = OUTER.match(text)
            first, last = match.span(1) if match else (0, 0)
            starts = [sum(map(len, pieces[:i])) for i in range(len(pieces) + 1)]
            if first in starts and last in starts and LETTERS.fullmatch(text[first:last]):
                yield text[first:last], tuple(pieces[starts.index(first) : starts.index(last)])
            pieces = []
