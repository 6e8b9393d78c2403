"""Conversations of a chat log as lists of turns in plain words (DiscoEval, section 3.4)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from corpora.document import Document
from corpora.tasks.builder import Reject

USER = "<user>"

_NICK = r"[\w\[\]\\`^{}|-]+"
_TOKEN = re.compile(_NICK)
_ADDRESSED = re.compile(rf"[@<(]?({_NICK})[>)]?\s*([:,;>]|-+(?=\s)|\.{{2,}})?(\s*)(?=\S)")
_MIN_LETTERS = 3
"""Minimum letters of a nickname without its marks, and of an unknown name before a colon."""
_TECHNICAL = re.compile(
    r"https?://|www\.|ftp://|\S*/\S+/|[~.]/\S|\\\\|^\s*[$#>]\s|[|&;]{2}|[{}<>=]{2}|--\w|\w+\(\)"
)
_BOT = re.compile(r"bot(?:u|tu)?\d*$", re.IGNORECASE)
"""The nickname of a program: it repeats prepared texts (`ubottu`, `FloodBot1`)."""
_WORD = re.compile(r"[\"'(]*[^\W\d_]+(?:['’-][^\W\d_]+)*[.,!?;:)\"']*$")


def conversations(
    document: Document, min_words: int, max_words: int, min_plain: float, reject: Reject
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the turns of each conversation in a document that has turns.

    Rejects turns that are too short, too long or technical, that a program wrote, that belong to no
    conversation, or that repeat a turn of theirs. Nicknames become `<user>`: they would show which
    conversation a turn is from. The limits are those of `why_refused`, and `max_words` words.
    """
    turns = document.turns
    if turns is None:
        return
    texts = [
        " ".join(document.text[start:end].split())
        for start, end in zip(turns.start, turns.end, strict=True)
    ]
    nicknames = Nicknames(turns.speaker, texts)
    turns_by_key: dict[int, dict[str, str]] = {}  # by conversation; a key is a turn in lower case
    masked = map(nicknames.mask, texts)
    for speaker, conversation, text in zip(turns.speaker, turns.conversation, masked, strict=True):
        reason = "no_conversation" if conversation < 0 else why_refused(text, min_words, min_plain)
        if _BOT.search(speaker):
            reason = "turn_of_a_program"
        if not reason and len(text.split()) > max_words:
            reason = "turn_too_long"
        if not reason and text.casefold() in turns_by_key.get(conversation, ()):
            reason = "turn_repeated"
        if reason:
            reject(reason)
        else:
            turns_by_key.setdefault(conversation, {})[text.casefold()] = text
    for conversation, by_key in turns_by_key.items():
        name = document.id if len(turns_by_key) == 1 else f"{document.id}#{conversation}"
        yield name, [*by_key.values()]


class Nicknames:
    """Recognises the nicknames of a chat log in other spellings too: `Ann_`, `ann-away`, `ann2`.

    `speakers` and `texts` are the nicknames and the texts of all turns of the log. Some nicknames
    are words (`ubuntu`, `right`). One that turns use as a word more often than its owner speaks and
    is addressed counts as a nickname only before a colon.
    """

    def __init__(self, speakers: Iterable[str], texts: Iterable[str]) -> None:
        self.known = Counter(normalize_nickname(speaker) for speaker in speakers if speaker)
        self.words, self.addressed = Counter[str](), Counter[str]()
        for text in texts:
            while (match := _ADDRESSED.match(text)) and match[2]:
                self.addressed[normalize_nickname(match[1])] += 1
                text = text[match.end() :]
            self.words.update(map(normalize_nickname, _TOKEN.findall(text)))

    def mask(self, text: str) -> str:
        """Return a turn with `<user>` for each nickname, `<user>: ` for that of an addressee."""
        address = ""
        while (match := _ADDRESSED.match(text)) and self._is_addressee(*match.groups()):
            address, text = f"{USER}: ", text[match.end() :]
        return address + _TOKEN.sub(lambda m: USER if self._is_nickname(m[0]) else m[0], text)

    def _is_nickname(self, token: str) -> bool:
        """Return whether a token is a nickname and not a word."""
        name = normalize_nickname(token)
        return 0 < self.known[name] >= self.words[name] - self.addressed[name]

    def _is_addressee(self, token: str, mark: str | None, space: str) -> bool:
        """Return whether the first token of a turn, before `mark` and `space`, names its addressee.
        Before a colon, a token that no turn uses as a word counts as a name too: that of a silent
        user, or a shortened one."""
        if mark != ":":
            return self._is_nickname(token)
        name = normalize_nickname(token)
        is_no_word = len(name) >= _MIN_LETTERS and not self.words[name]
        return name in self.known or bool(space and is_no_word)


def normalize_nickname(name: str) -> str:
    """Return a nickname in lower case, without marks, and without a number or `|away` at its end.

    If fewer than `_MIN_LETTERS` letters would be left, only the case is changed.
    """
    nickname = name.strip("|").partition("|")[0]
    letters = "".join(filter(str.isalnum, nickname)).casefold().rstrip("0123456789")
    return letters if len(letters) >= _MIN_LETTERS else name.casefold()


def why_refused(text: str, min_words: int, min_plain: float) -> str:
    """Return the reason why a turn cannot be used, or "" if it can.

    A turn is `turn_too_short` if it has fewer than `min_words` plain words (letters only). It is
    `turn_technical` if it has an address, a path or a command, or if the share of plain words among
    its tokens is below `min_plain`. The paper names no rules; these are ours.
    """
    words = [word for word in text.split() if USER not in word]
    plain = sum(bool(_WORD.match(word)) for word in words)
    if plain < min_words:
        return "turn_too_short"
    if plain < min_plain * len(words) or _TECHNICAL.search(text.removeprefix(f"{USER}:")):
        return "turn_technical"
    return ""
