"""Settings of a run: the section `[discorpora]` of `luigi.cfg`, and defaults for Luigi's settings.

Every stage reads them: the build file, the output folder, whether stages are planned only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import luigi

from workflows import devices


class discorpora(luigi.Config):
    """The section `[discorpora]` of `luigi.cfg`."""

    config = luigi.Parameter("sample", description="the build file")
    # Of `luigi.Config`, a task too, `output` is a method.
    output = luigi.Parameter(  # type: ignore[assignment]
        default="build", description="where everything is built"
    )
    rehash = luigi.BoolParameter(
        default=False, description="read every source, also if its state has not changed"
    )
    retrain = luigi.BoolParameter(default=False, description="reuse no model that other code made")
    debug = luigi.BoolParameter(default=False, description="show tracebacks")
    looking = luigi.BoolParameter(
        default=False, description="make no stage, write nothing; a missing source is no error"
    )


DEFAULTS = {
    # Luigi itself ends with 0 when a task has failed.
    ("retcode", "already_running"): "10",
    ("retcode", "missing_data"): "20",
    ("retcode", "not_run"): "25",
    ("retcode", "task_failed"): "30",
    ("retcode", "scheduling_error"): "35",
    ("retcode", "unhandled_exception"): "40",
    # A failed stage fails for a reason that trying again does not change.
    ("scheduler", "retry_count"): "1",
    ("core", "no_configure_logging"): "true",
}

CENTRAL = ("scheduler_host", "scheduler_port", "scheduler_url")
"""Options that name a central scheduler; in `[core]` also as `default_...`."""


def set_defaults() -> None:
    """Set defaults of Luigi's settings, which `luigi` reads after it has imported `workflows`."""
    settings, defaults = luigi.configuration.get_config(), dict(DEFAULTS)
    given_options = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in sys.argv[1:]}
    central = [name for key in CENTRAL for name in (key, f"default_{key}")]
    if not any(name in given_options or settings.has_option("core", name) for name in central):
        # Luigi's default is one at localhost:8082, which few have: a minute's wait and a traceback.
        defaults["core", "local_scheduler"] = "true"
    defaults["resources", "training"] = _training_slots()
    for (section, key), value in defaults.items():
        if not settings.has_option(section, key):
            settings.set(section, key, value)


@contextmanager
def options(
    config: str,
    output: str,
    workers: int = 1,
    *,
    fresh: bool = True,
    rehash: bool = False,
    retrain: bool = False,
    looking: bool = False,
) -> Iterator[None]:
    """Set the settings of a run while the context lasts, as `luigi.cfg` sets them for `luigi`.

    Luigi returns the same task object for the same parameters. With `fresh` it makes new ones,
    since earlier ones may have read other settings or files.
    """
    settings = luigi.configuration.get_config()
    changes = {
        ("discorpora", "config"): config,
        ("discorpora", "output"): output,
        ("discorpora", "rehash"): str(rehash),
        ("discorpora", "retrain"): str(retrain),
        ("discorpora", "looking"): str(looking),
        ("core", "workers"): str(workers),
        ("core", "local_scheduler"): "true",
        ("resources", "training"): _training_slots(),
    }
    before = {option: settings.get(*option, None) for option in changes}
    if fresh:
        luigi.task_register.Register.clear_instance_cache()
    for option, value in changes.items():
        settings.set(*option, value)
    try:
        yield
    finally:
        for (section, key), value in before.items():
            if value is None:
                settings.remove_option(section, key)
            else:
                settings.set(section, key, value)


def _training_slots() -> str:
    """The amount of Luigi's resource `training`: the number of GPUs; 1 without a GPU."""
    return str(max(1, len(devices.available_gpus())))
