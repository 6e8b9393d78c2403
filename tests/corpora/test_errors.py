"""Hints in the language of their place."""

from __future__ import annotations

import pytest

from corpora.errors import ConfigError, amount


@pytest.mark.parametrize(
    ("hint", "toml"),
    [
        ("use --parser stanza:es, or gold", 'use parser = "stanza:es", or gold'),
        ("lower --learning_rate, or --bf16 false", "lower learning_rate, or bf16 = false"),
        ("leave out --limit and --split", "leave out limit and split"),
        ("add --dataset VALUE", "add dataset = VALUE"),
        ("discorpora train x --dataset D", "discorpora train x --dataset D"),
    ],
)
def test_a_hint_in_a_build_file_is_toml(hint: str, toml: str) -> None:
    assert str(ConfigError("no", where="b.toml:3: x", hint=hint)).endswith(toml)
    assert str(ConfigError("no", where="b.txt:3", hint=hint)).endswith(hint)


@pytest.mark.parametrize(
    ("hint", "flags"),
    [
        ('set vector = "mean", or use BERT', "set --vector mean, or use BERT"),
        ("set embedding_size = 50", "set --embedding_size 50"),
    ],
)
def test_a_hint_on_the_command_line_is_flags(hint: str, flags: str) -> None:
    assert str(ConfigError("no", where="data", hint=hint).with_flags()).endswith(flags)
    assert str(ConfigError("no", where="p.toml:1", hint=hint).with_flags()).endswith(hint)


def test_an_amount_is_written_with_its_noun() -> None:
    said = [amount(number, "pair") for number in (0, 1, 2, 2000)]
    assert said == ["0 pairs", "1 pair", "2 pairs", "2,000 pairs"]
