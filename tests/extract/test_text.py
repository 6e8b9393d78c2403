"""The text of a pair: the author's own, as a sentence; or the paper's tokens."""

from __future__ import annotations

import pytest

from extract.text import tokenised, written


@pytest.mark.parametrize(
    ("text", "spans", "expected"),
    [
        ("he didn't go, because", [(0, 12)], "He didn't go."),
        ("go  slowly\nnow", [(0, 14)], "Go slowly now."),
        ("who was it?", [(0, 11)], "Who was it?"),
        ("it rains, they say, daily", [(0, 8), (20, 25)], "It rains daily."),
        ('he said "go away', [(8, 16)], "Go away."),
        ('he said "go" twice', [(0, 18)], 'He said "go" twice.'),
        ("(if it rains) we stay", [(1, 13)], "If it rains."),
        ("we stay (and read)", [(0, 18)], "We stay (and read)."),
        ("“never” he said", [(0, 15)], "“Never” he said."),
        ("did you go , then ?", [(0, 10), (18, 19)], "Did you go?"),
        ("éclairs were gone", [(0, 17)], "Éclairs were gone."),
        ("he left…", [(0, 8)], "He left…"),
        ("he was rich. [28]", [(0, 17)], "He was rich."),
        ("he said “no.” [28]", [(0, 18)], "He said “no.”"),
        ("see [28]", [(0, 8)], "See [28]."),
        ("_But_ nobody spoke", [(4, 18)], "Nobody spoke."),
        ("_never_ did he speak", [(0, 20)], "_Never_ did he speak."),
    ],
)
def test_as_written(text: str, spans: list[tuple[int, int]], expected: str) -> None:
    assert written(text, spans) == expected


def test_tokens_end_in_a_full_stop_of_their_own() -> None:
    assert tokenised(["he", "did", "n't", "go"]) == "He did n't go ."
    assert tokenised(["why", "?"]) == "Why ?"
