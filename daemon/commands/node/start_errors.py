"""The reason of a failed start or a crash as a JSON log line, if log lines are JSON, for log collectors.

On a terminal it is a line for people, whatever the format of the log.
"""

import os
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.configuration.model import ENV_DELIMITER, ENV_PREFIX
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.event_files import EventFileError

FORMAT_VARIABLE = f"{ENV_PREFIX}LOG{ENV_DELIMITER}FORMAT"
# Set by systemd for a service whose standard error is the journal.
JOURNAL_VARIABLE = "JOURNAL_STREAM"


@contextmanager
def json_errors(config: Path) -> Iterator[None]:
    """Log an error of a node as its last line; exit with code 2 for an error that a user can correct, else with 1.

    On a terminal, and if log lines are not JSON, the error propagates and is shown like the errors of other commands.
    """
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        if sys.stderr.isatty() or not logs_json(config):
            raise
        log.configure("info", LogFormat.JSON)
        # The errors that commands show in one line: input, configuration, back end, files.
        if isinstance(error, (ValueError, OSError, BackendError, EventFileError)):
            log.get_logger("serve").critical("not_started", error=str(error))
            raise typer.Exit(2) from error
        log.get_logger("serve").critical("crashed", error=repr(error), exc_info=error)
        raise typer.Exit(1) from error


def logs_json(config: Path) -> bool:
    """True if a node with this file writes JSON log lines; the file may be invalid.

    If neither file nor environment sets the format: JSON for the journal of systemd, text for a terminal.
    """
    wanted: object = os.environ.get(FORMAT_VARIABLE)
    if wanted is None:
        try:
            wanted = tomllib.loads(config.read_text()).get("log", {}).get("format")
        except (OSError, ValueError, AttributeError):
            wanted = None
    if wanted is None:
        return JOURNAL_VARIABLE in os.environ
    return wanted == LogFormat.JSON
