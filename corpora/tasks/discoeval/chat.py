"""Conversations of a chat log as lists of turns that can be understood (DiscoEval, 3.4)."""

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
_LEAST = 3
"""Letters of a name that is known without its marks, or that is not known to be one."""
_TECHNICAL = re.compile(
    r"https?://|www\.|ftp://|\S*/\S+/|[~.]/\S|\\\\|^\s*[$#>]\s|[|&;]{2}|[{}<>=]{2}|--\w|\w+\(\)"
)
_BOT = re.compile(r"bot(?:u|tu)?\d*$", re.IGNORECASE)
"""The nickname of a program: it repeats prepared texts (`ubottu`, `FloodBot1`)."""
_WORD = re.compile(r"[\"'(]*[^\W\d_]+(?:['’-][^\W\d_]+)*[.,!?;:)\"']*$")


def conversations(
    document: Document, min_words: int, max_words: int, min_plain: float, reject: Reject
) -> Iterator[tuple[str, list[str]]]:
    """The conversations of a document with turns: the name of each, and its turns.

    Turns that are too short, too long or technical are left out and told to `reject`, turns of
    programs, of an unknown conversation and those said before in theirs too. Nicknames become
    `<user>`: they would give away which conversation a turn is from.
    """
    turns = document.turns
    if turns is None:
        return
    texts = [
        " ".join(document.text[start:end].split())
        for start, end in zip(turns.start, turns.end, strict=True)
    ]
    nicknames = Nicknames(turns.speaker, texts)
    said: dict[int, dict[str, str]] = {}
    masked = map(nicknames.masked, texts)
    for speaker, conversation, text in zip(turns.speaker, turns.conversation, masked, strict=True):
        reason = "no_conversation" if conversation < 0 else why_refused(text, min_words, min_plain)
        if _BOT.search(speaker):
            reason = "turn_of_a_program"
        if not reason and len(text.split()) > max_words:
            reason = "turn_too_long"
        if not reason and text.casefold() in said.get(conversation, ()):
            reason = "turn_repeated"
        if reason:
            reject(reason)
        else:
            said.setdefault(conversation, {})[text.casefold()] = text
    for conversation, own in said.items():
        yield document.id if len(said) == 1 else f"{document.id}#{conversation}", [*own.values()]


class Nicknames:
    """The nicknames of a log in the spellings that its turns use: `Ann_`, `ann-away`, `ann2`.

    A nickname that turns use as a word (`ubuntu`, `right`), more often than its bearer speaks and
    is spoken to, is one only before a colon.
    """

    def __init__(self, speakers: Iterable[str], texts: Iterable[str]) -> None:
        self.known = Counter(spelling(speaker) for speaker in speakers if speaker)
        self.words, self.addressed = Counter[str](), Counter[str]()
        for text in texts:
            while (match := _ADDRESSED.match(text)) and match[2]:
                self.addressed[spelling(match[1])] += 1
                text = text[match.end() :]
            self.words.update(map(spelling, _TOKEN.findall(text)))

    def masked(self, text: str) -> str:
        """The text with `<user>` for each nickname, and `<user>: ` for those whom it is said to."""
        said_to = ""
        while (match := _ADDRESSED.match(text)) and self._addresses(*match.groups()):
            said_to, text = f"{USER}: ", text[match.end() :]
        return said_to + _TOKEN.sub(lambda m: USER if self._names(m[0]) else m[0], text)

    def _names(self, token: str) -> bool:
        """Whether a token is a nickname and not a word."""
        name = spelling(token)
        return 0 < self.known[name] >= self.words[name] - self.addressed[name]

    def _addresses(self, token: str, mark: str | None, space: str) -> bool:
        """Whether a turn that begins with the token is said to somebody.

        Before a colon a token that no turn has as a word is taken for a name too: that of
        somebody who is silent here, or a name cut short.
        """
        name = spelling(token)
        if mark == ":":
            unknown = space and len(name) >= _LEAST and not self.words[name]
            return name in self.known or bool(unknown)
        return self._names(token)


def spelling(name: str) -> str:
    """A nickname in lower case without marks, number and `|away` at its end, if enough is left."""
    first = name.strip("|").partition("|")[0]
    bare = "".join(filter(str.isalnum, first)).casefold().rstrip("0123456789")
    return bare if len(bare) >= _LEAST else name.casefold()


def why_refused(text: str, min_words: int, min_plain: float) -> str:
    """Why a turn cannot be used, or nothing.

    `turn_technical`: an address, a path, a command, or fewer than `min_plain` of its tokens are
    plain words. The paper names no rules; these are ours.
    """
    words = [word for word in text.split() if USER not in word]
    plain = sum(bool(_WORD.match(word)) for word in words)
    if plain < min_words:
        return "turn_too_short"
    if plain < min_plain * len(words) or _TECHNICAL.search(text.removeprefix(f"{USER}:")):
        return "turn_technical"
    return ""
