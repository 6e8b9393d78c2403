"""Conversations of a chat log as lists of turns that can be understood (DiscoEval, 3.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpora.document import Document
from corpora.tasks.builder import Reject

USER = "<user>"

_ADDRESSED = re.compile(r"([^\s:,]{1,40})\s*[:,]\s+(?=\S)")
_TECHNICAL = re.compile(
    r"https?://|www\.|ftp://|\S*/\S+/|[~.]/\S|\\\\|^\s*[$#>]\s|[|&;]{2}|[{}<>=]{2}|--\w|\w+\(\)"
)
_WORD = re.compile(r"[\"'(]*[^\W\d_]+(?:['’-][^\W\d_]+)*[.,!?;:)\"']*$")


def conversations(
    document: Document, min_words: int, max_words: int, min_plain: float, reject: Reject
) -> Iterator[tuple[str, list[str]]]:
    """The conversations of a document with turns: the name of each, and its turns.

    Turns that are too short, too long or technical are left out and told to `reject`, turns of an
    unknown conversation too. A nickname at the beginning of a turn, to whom it is said, becomes
    `<user>`: it would give away which conversation a turn is from.
    """
    turns = document.turns
    if turns is None:
        return
    nicks = {speaker.casefold() for speaker in turns.speaker if speaker}
    said: dict[int, list[str]] = {}
    rows = zip(turns.conversation, turns.start, turns.end, strict=True)
    for conversation, start, end in rows:
        text = masked(" ".join(document.text[start:end].split()), nicks)
        reason = "no_conversation" if conversation < 0 else refused(text, min_words, min_plain)
        if not reason and len(text.split()) > max_words:
            reason = "turn_too_long"
        if reason:
            reject(reason)
        else:
            said.setdefault(conversation, []).append(text)
    for conversation, texts in said.items():
        yield document.id if len(said) == 1 else f"{document.id}#{conversation}", texts


def masked(text: str, nicks: set[str]) -> str:
    """The text with a known nickname at its beginning replaced."""
    addressed = _ADDRESSED.match(text)
    if addressed and addressed[1].casefold() in nicks:
        return f"{USER}: {text[addressed.end() :]}"
    return text


def refused(text: str, min_words: int, min_plain: float) -> str:
    """Why a turn cannot be used, or nothing.

    `turn_technical`: an address, a path, a command, or fewer than `min_plain` of its tokens are
    plain words. The paper names no rules; these are ours.
    """
    words = text.removeprefix(f"{USER}:").split()
    plain = sum(bool(_WORD.match(word)) for word in words)
    if plain < min_words:
        return "turn_too_short"
    if plain < min_plain * len(words) or _TECHNICAL.search(text.removeprefix(f"{USER}:")):
        return "turn_technical"
    return ""
