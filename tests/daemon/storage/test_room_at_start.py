"""A session that starts on a full disk waits for room."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from hltnode.daemon.common.vocabulary import WriteErrorKind
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage.output_directory import OutputError
from hltnode.daemon.storage.room_at_start import RETRY_SECONDS, open_when_there_is_room


class Disk:
    def __init__(self, *errors: int) -> None:
        self.counters = WriterCounters()
        self.said: list[str] = []
        self.waits: list[float] = []
        self._errors = list(errors)

    def open_store(self) -> str:
        self.counters.journal_damage += 1
        if self._errors:
            number = self._errors.pop(0)
            raise OutputError(Path("/out/node.journal"), OSError(number, "text of the error"))
        return "store"

    def open_when_there_is_room(self) -> str:
        return open_when_there_is_room(self.open_store, self.counters, self.said.append, self.waits.append)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_tried_until_it_has_room_and_counts_no_finding_twice(number: int) -> None:
    disk = Disk(number, number)
    assert disk.open_when_there_is_room() == "store"
    assert disk.waits == [RETRY_SECONDS, RETRY_SECONDS]
    assert disk.said == 2 * ["waits for room on the disk: /out/node.journal: text of the error"]
    assert disk.counters.journal_damage == 1
    assert disk.counters.errors[WriteErrorKind.DISK_FULL] == 2


def test_another_error_ends_the_start_at_once() -> None:
    disk = Disk(errno.EIO)
    with pytest.raises(OutputError):
        disk.open_when_there_is_room()
    assert disk.waits == []
