"""Imported before torch by the commands of developers: without the extra `zoo` they end with the
line that installs it."""

import sys

from corpora.errors import DiscorporaError
from zoo import require_extra

try:
    require_extra("to run this command")
except DiscorporaError as error:
    sys.exit(f"error: {error}")
