"""Strikes on two nodes and their combiner: any of the three processes is killed, or stands still, in a drawn order."""

from __future__ import annotations

import random
import signal
import time
from enum import StrEnum, unique
from subprocess import Popen

from tests.daemon.processes.combined_farm import Farm
from tests.daemon.processes.test_processes import Site

MOST_SECONDS = 3.0
"""A strike waits for progress, but not longer: at the end of the stream there is none."""
PROGRESS = 3
"""Slices that a node takes from one strike to the next."""


@unique
class Strike(StrEnum):
    """What happens to a process."""

    KILL_COMBINER = "kill combiner"
    STOP_COMBINER = "stop combiner"
    KILL_ONE = "kill node one"
    KILL_TWO = "kill node two"
    STOP_TWO = "stop node two"


def plan(seed: int, n: int) -> list[Strike]:
    """A drawn order of strikes that has each kind once before any comes again."""
    drawn = random.Random(f"{seed}/combiner")
    strikes: list[Strike] = []
    while len(strikes) < n:
        kinds = list(Strike)
        drawn.shuffle(kinds)
        strikes += kinds
    return strikes[:n]


class CombinerStrikes:
    """Executes strikes on a farm that takes a stream, one at a time.

    Each waits until slices leave both nodes again. Without that, a combiner and both nodes killed within seconds lose
    the seeds of slices that have left, and a slice beside them waits for `--wait`.
    """

    def __init__(self, farm: Farm) -> None:
        self._farm = farm

    def execute(self, strike: Strike) -> None:
        """One strike after some progress, and the recovery."""
        self._wait_for_progress()
        farm = self._farm
        one, two = farm.sites
        joined = {site.http: _joined(site) for site in farm.sites}
        match strike:
            case Strike.KILL_COMBINER:
                _kill(one, farm.combiner)
                farm.start_combiner()
            case Strike.STOP_COMBINER:
                self._stop(farm.combiner)
            case Strike.KILL_ONE | Strike.KILL_TWO:
                site = one if strike is Strike.KILL_ONE else two
                _kill(site, site.node)  # type: ignore[attr-defined]
                farm.start_node(site)
                joined[site.http] = 0
            case Strike.STOP_TWO:
                self._stop(two.node)  # type: ignore[attr-defined]
        for site in farm.sites:
            one.wait_for(lambda site=site: _is_over(site) or _joined(site) > joined[site.http], 120.0)  # type: ignore[misc]

    def _stop(self, process: Popen[bytes]) -> None:
        process.send_signal(signal.SIGSTOP)
        try:
            self._wait_for_progress()
        finally:
            process.send_signal(signal.SIGCONT)

    def _wait_for_progress(self) -> None:
        farm = self._farm
        begin = [farm.processed(site) for site in farm.sites]

        def has_moved() -> bool:
            now = [farm.processed(site) for site in farm.sites]
            return all(after - before >= PROGRESS for before, after in zip(begin, now, strict=True))

        end = time.monotonic() + MOST_SECONDS
        while time.monotonic() < end and not has_moved():
            time.sleep(0.02)


def _joined(site: Site) -> int:
    """Slices that left a node with the answer of the combiner, in its session."""
    status = site.status()
    return 0 if status is None else int(status["combiner"]["slices"]["joined"])


def _is_over(site: Site) -> bool:
    return site.feeder.poll() is not None  # type: ignore[attr-defined]


def _kill(site: Site, process: Popen[bytes]) -> None:
    process.kill()
    assert site.wait(process) == -signal.SIGKILL
