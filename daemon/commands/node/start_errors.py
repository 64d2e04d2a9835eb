"""Why a node has not started or has crashed, as a log line where lines are JSON: a collector of logs can read it."""

import os
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
    """Log an error of a node as its last line and end with exit code 2 for what a user can correct, else with 1.

    Where the lines are not JSON, the error goes on, to be shown as the commands show theirs.
    """
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        if not logs_json(config):
            raise
        log.configure("info", LogFormat.JSON)
        # The same errors that the commands show in one line: input, configuration, back end, files.
        if isinstance(error, (ValueError, OSError, BackendError, EventFileError)):
            log.get_logger("serve").critical("not_started", error=str(error))
            raise typer.Exit(2) from error
        log.get_logger("serve").critical("crashed", error=repr(error), exc_info=error)
        raise typer.Exit(1) from error


def logs_json(config: Path) -> bool:
    """Whether a node with this file writes JSON, as far as that can be read of a file that may be wrong.

    By default JSON is for the journal, and text for the user who typed the command.
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
