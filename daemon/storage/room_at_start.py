"""The start of a session on a full disk: it waits for room, as a running node does.

Recovery rewrites the journal and completes files, so it needs room. After a kill on a full disk a node that ended here
would be started again and again, until systemd gives up.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import WriteErrorKind
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage.output_directory import OutputError

# A full disk seldom gets room within a second.
RETRY_SECONDS = 1.0

Opened = TypeVar("Opened")

log = get_logger("room_at_start")


def open_when_there_is_room(
    open_store: Callable[[], Opened],
    counters: WriterCounters,
    say: Callable[[str], None],
    wait: Callable[[float], None] = time.sleep,
) -> Opened:
    """The result of the first attempt that finds room on the disk.

    Args:
        open_store: one attempt; it leaves everything closed if it fails.
        counters: what a failed attempt counted is taken back, because the next one counts it again.
        say: called before each wait with the reason.

    Raises:
        OutputError: an attempt failed for another reason than a full disk.
    """
    waits = False
    while True:
        before = copy.deepcopy(counters)
        try:
            opened = open_store()
        except OutputError as error:
            if error.kind is not WriteErrorKind.DISK_FULL:
                raise
            for each in fields(counters):
                setattr(counters, each.name, getattr(before, each.name))
            counters.errors[error.kind] += 1
            reason = f"waits for room on the disk: {error.filename}: {error.strerror}"
            if not waits:
                log.error("start_waits_for_room", path=error.filename, error=error.strerror)
            waits = True
            say(reason)
            wait(RETRY_SECONDS)
        else:
            if waits:
                log.info("start_goes_on")
            return opened
