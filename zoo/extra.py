"""Imported first, before torch, by developers' commands: if the extra `zoo` is not installed, it
ends the command with an error that says how to install it."""

import sys

from corpora.errors import DiscorporaError
from zoo import require_extra

try:
    require_extra("to run this command")
except DiscorporaError as error:
    sys.exit(f"error: {error}")
