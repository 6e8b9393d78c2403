"""The GPUs of this machine, shared out among the trainings and evaluations of a build."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from corpora.errors import ConfigError
from zoo.declared import Recipe, StepRecipe

VISIBLE = "CUDA_VISIBLE_DEVICES"
POLL_SECONDS = 0.2


def available_gpus() -> tuple[str, ...]:
    """Return the names of the GPUs in `CUDA_VISIBLE_DEVICES`, each once; without it, all GPUs."""
    visible = os.environ.get(VISIBLE)
    if visible is None:
        return tuple(map(str, range(len([*Path("/dev").glob("nvidia[0-9]*")]))))
    names = [name.strip() for name in visible.split(",")]
    hidden = names.index("-1") if "-1" in names else len(names)
    return tuple(dict.fromkeys(filter(None, names[:hidden])))


def process_count(recipe: Recipe, wanted: int) -> int:
    """Return on how many GPUs a recipe trains: at most `wanted`, and a divisor of its batch size.

    A step has the same examples for every number, so the number does not change the model.
    """
    for number in range(min(wanted, len(available_gpus())), 1, -1):
        with suppress(ConfigError):
            if isinstance(recipe, StepRecipe) and recipe.share_of_batch(number):
                return number
    return 1


@contextmanager
def locked_gpus(number: int) -> Iterator[dict[str, str]]:
    """Wait for `number` free GPUs, and lock them while the context lasts.

    Yields the environment variables of a process that uses them; none if there is no GPU. The locks
    exclude other builds of this user; they end with the process.
    """
    names = available_gpus()
    if not names:
        yield {}
        return
    number = min(number, len(names))
    folder = Path(tempfile.gettempdir()) / f"discorpora-devices-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with ExitStack() as locks:
        locked: list[str] = []
        # One process collects at a time: two that hold half of the GPUs each would wait for ever.
        with (folder / "gate").open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            while len(locked) < number:
                for name in names:
                    if name in locked or len(locked) == number:
                        continue
                    lock = (folder / name.replace("/", "-")).open("w")
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        lock.close()
                        continue
                    locks.enter_context(lock)
                    locked.append(name)
                if len(locked) < number:
                    time.sleep(POLL_SECONDS)
        yield {VISIBLE: ",".join(locked)}
