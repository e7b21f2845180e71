"""The command line: `penstock run`, `explain`, `check` and `demo`."""

from __future__ import annotations

import sys

from penstock.cli.app import app
from penstock.cli.show import complain
from penstock.errors import PenstockError


def main() -> None:
    """Run a command; an error of ours is shown as its text, without a traceback."""
    try:
        app()
    except PenstockError as error:
        complain(error)
        sys.exit(1)
    except BrokenPipeError:  # the reader of a pipe has gone, as `head` does
        sys.stderr.close()
        sys.exit(1)
