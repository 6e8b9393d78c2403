"""Luigi's own settings, where the user's configuration says nothing of them."""

from __future__ import annotations

import luigi

DEFAULTS = {
    # Luigi itself ends with 0 when a task has failed.
    "retcode": {
        "already_running": "10",
        "missing_data": "20",
        "not_run": "25",
        "task_failed": "30",
        "scheduling_error": "35",
        "unhandled_exception": "40",
    },
    # A failed stage fails for a reason that trying again does not change.
    "scheduler": {"retry_count": "1"},
    "core": {"no_configure_logging": "true"},
}


def set_defaults() -> None:
    """Set what no `luigi.cfg` has set; the `luigi` command reads it after it has loaded us."""
    settings = luigi.configuration.get_config()
    for section, values in DEFAULTS.items():
        for key, value in values.items():
            if not settings.has_option(section, key):
                settings.set(section, key, value)
