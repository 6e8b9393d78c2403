"""What the campaigns share: a seed for each case, limits, and a row of docs/results/fuzzing.md.

`DISCORPORA_SEED=N` starts at case N instead of 0, `DISCORPORA_CASES=N` runs N cases at most;
`DISCORPORA_FUZZING=FILE` appends the rows to a file, which `python -m tests.fuzz.campaign FILE`
prints as the table.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import pytest

from corpora.errors import DiscorporaError
from workflows import console

SECONDS, WAIT, MEMORY = 20, 240, 1 << 30
"""What a case may take: processor seconds, seconds, and bytes beyond what the process has."""
LINES = 3
"""Most lines of an error for people."""
READ, REFUSED, LONG, TRACEBACK, HANG, MEMORY_GONE, KILLED = ENDS = (
    *("read", "refused", "long message", "traceback", "hang", "> 1 GiB", "killed"),
)
Call = Callable[[], object]
Case = Callable[[int], tuple[str, Call]]
"""From a seed: what was done to the input, and the call that reads it."""

VALUES: list[Any] = [
    *(0, -1, 1, 3, 7, 10**6, 10**9, 2**31, 2**63, 10**30, 1.5, 1e300, float("nan")),
    *("", "x", "gelu", "../../x", None, True, [], {}, [1, 2], {"a": 1}, "\ud800", ["x"] * 3),
]


def sizes(sample: int, campaign: int) -> pytest.MarkDecorator:
    """The number of cases in the suite and in the campaign of `make nightly`."""
    whole = pytest.param(campaign, marks=pytest.mark.nightly)
    return pytest.mark.parametrize("cases", [sample, whole], ids=["sample", "campaign"])


def run(kind: str, cases: int, case: Case, *, forked: bool = False) -> None:
    """Run the cases and fail with those that ended badly; `forked`: each in its own process."""
    found: Counter[str] = Counter()
    bad: dict[str, list[str]] = {}
    cases = min(cases, int(os.environ.get("DISCORPORA_CASES", cases)))
    start, began = int(os.environ.get("DISCORPORA_SEED", "0")), time.process_time()
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory starts anew
    peak = 0
    with limited_memory():
        for seed in range(start, start + cases):
            done, call = case(seed)
            ended, said, size = of_a_fork(call) if forked else (*how(call), 0)
            found[ended] += 1
            peak = max(peak, size)
            if ended not in (READ, REFUSED):
                bad.setdefault(f"{ended}: {said}", []).append(f"seed {seed}: {done}")
    seconds = time.process_time() - began
    seconds += resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime if forked else 0
    peak = max(peak, memory("VmHWM")) >> 20
    row = {"kind": kind, "cases": cases, **found, "MiB": peak, "seconds": round(seconds, 1)}
    sys.stderr.write(f"\n{row}\n")
    if file := os.environ.get("DISCORPORA_FUZZING"):
        with Path(file).open("a", encoding="utf-8") as rows:
            rows.write(f"{json.dumps(row)}\n")
    shown = [f"{len(seeds)} times, {seeds[0]}\n{said}" for said, seeds in bad.items()]
    assert not bad, "\n".join(shown[:12])


class Hang(BaseException):
    """A case took too long."""


def hang(*_: object) -> NoReturn:
    raise Hang


def how(call: Call) -> tuple[str, str]:
    """How a call ends, and what is said."""
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, hang)
    signal.alarm(WAIT)  # for a call that waits; a machine may be shared
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with console.explained(Path.cwd()):  # as the command line does
            call()
    except DiscorporaError as error:
        lines = str(error).count("\n") + 1
        return (REFUSED, "") if lines <= LINES else (LONG, str(error)[:2000])
    except Hang:
        return HANG, last_lines()
    except MemoryError:
        return MEMORY_GONE, last_lines()
    except Exception as error:
        return (MEMORY_GONE if "memory" in str(error) else TRACEBACK), last_lines()
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return READ, ""


def last_lines() -> str:
    return "".join(traceback.format_exc().splitlines(keepends=True)[-7:])


def of_a_fork(call: Call) -> tuple[str, str, int]:
    """How a process ends that makes the call, what is said, and its peak of memory in bytes."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        ended, said = KILLED, ""
        try:
            os.close(reader)
            os.dup2(os.open(os.devnull, os.O_RDWR), 2)
            with limited_memory():
                ended, said = how(call)
        except BaseException:
            ended, said = TRACEBACK, last_lines()
        os.write(writer, json.dumps([ended, said[:2000]]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
        signal.alarm(2 * WAIT)  # for a call that holds the interpreter
        said = pipe.read().decode("utf-8", "replace")
        signal.alarm(0)
    _, status, usage = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        return KILLED, signal.Signals(os.WTERMSIG(status)).name, usage.ru_maxrss << 10
    return *json.loads(said), usage.ru_maxrss << 10


@contextmanager
def limited_memory() -> Iterator[None]:
    """`MEMORY` more than the process has by now."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def memory(name: str) -> int:
    """A figure of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a JSON value are, a thousand at most of each list or table."""
    if at:
        yield at
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in islice(parts, 1000):
            yield from places(inner, (*at, key))


MORE = [*VALUES, "x" * 1000, "a\nb", "../../etc/passwd", "<img src=x onerror=alert(1)>"]


def spoilt_json(text: str, draw: random.Random) -> bytes:
    """The JSON with a value changed, a key lost, or its bytes cut or flipped."""
    way, data = draw.randrange(10), text.encode()
    at = draw.randrange(len(data))
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    if way == 2:
        return draw.choice([b"[" * 10**5, b"9" * 10**4, b"\xff\xfe{}", b'{"a":' * 500, b"null"])
    value = inner = json.loads(text)
    place = draw.choice(list(places(value)))
    for key in place[:-1]:
        inner = inner[key]
    if way == 3:
        del inner[place[-1]]
    else:
        inner[place[-1]] = draw.choice(MORE)
    return json.dumps(value).encode()


def table(path: Path) -> str:
    """The rows of a file added up by kind, as Markdown."""
    kinds: dict[str, Counter[str]] = {}
    peaks: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kind = row.pop("kind")
        peaks[kind] = max(peaks[kind], row.pop("MiB"))
        kinds.setdefault(kind, Counter()).update(row)
    kinds["together"] = sum(kinds.values(), Counter())
    peaks["together"] = max(peaks.values())
    shown = ["cases", *ENDS]
    lines = [f"| input | {' | '.join(shown)} | MiB | processor seconds |"]
    lines.append(f"|---|{'---:|' * (len(shown) + 2)}")
    for kind, found in kinds.items():
        cells = [f"{found[name]:,}" for name in shown]
        cells += [f"{peaks[kind]:,}", f"{found['seconds']:,.0f}"]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table(Path(sys.argv[1]))}\n")
