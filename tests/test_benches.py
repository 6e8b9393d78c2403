"""The benchmarks keep up with the code: they import what is there."""

from importlib import import_module
from pathlib import Path

import pytest

BENCHES = sorted(path.stem for path in Path(__file__).with_name("bench").glob("[a-z]*.py"))


@pytest.mark.parametrize("name", BENCHES)
def test_a_benchmark_imports(name):
    import_module(f"tests.bench.{name}")
