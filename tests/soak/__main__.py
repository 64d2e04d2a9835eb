"""python -m tests.soak --seconds 120 --seed 1: prints fed, built, by class, and the verdict; exit code 1 on failure."""

import argparse
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hltnode.daemon.event_building.accounting import closes
from tests.soak.consumer import SlowConsumer
from tests.soak.content import EVENTS_PER_MEP, write_meps
from tests.soak.site import Site, SoakError, stopped
from tests.soak.verdict import compare, not_named, read_files, some

FEEDERS = 3
EVENTS_PER_SECOND = 800
# Pauses between two blows, and how long a stopped process stands still: on both sides of the MEP timeout.
PAUSE_SECONDS = (1.0, 4.0)
STOP_SECONDS = (0.1, 1.5)
# After the last blow everything has to come to its end in this time.
FINISH_SECONDS = 90.0


class Chaos:
    """Blows at random, the same ones for the same seed."""

    def __init__(self, site: Site, seed: int) -> None:
        self._site = site
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.recovery_seconds: list[float] = []

    def strike(self) -> None:
        """One blow, and the repair that a supervisor would do."""
        blows: list[tuple[Callable[[], None], int]] = [
            (self._kill_feeder, 3),
            (self._stop_feeder, 3),
            (self._stop_node, 2),
            (self._kill_node, 1),
        ]
        [blow] = self._random.choices([blow for blow, _ in blows], [weight for _, weight in blows])
        self.done[blow.__name__.strip("_")] += 1
        blow()

    def pause(self) -> float:
        """Seconds until the next blow."""
        return self._random.uniform(*PAUSE_SECONDS)

    def _some_feeder(self) -> int | None:
        running = self._site.running_feeders()
        return self._random.choice(running) if running else None

    def _kill_feeder(self) -> None:
        number = self._some_feeder()
        if number is None:
            return
        _kill(self._site.feeders[number])
        time.sleep(self._random.uniform(0.0, 1.0))
        # One that had fed everything before the blow fell would wait for a run that is over.
        if self._site.feeders[number].returncode != 0:
            self._site.start_feeder(number)

    def _stop_feeder(self) -> None:
        number = self._some_feeder()
        if number is not None:
            with stopped(self._site.feeders[number]):
                time.sleep(self._random.uniform(*STOP_SECONDS))

    def _stop_node(self) -> None:
        assert self._site.node is not None
        with stopped(self._site.node):
            time.sleep(self._random.uniform(*STOP_SECONDS))

    def _kill_node(self) -> None:
        assert self._site.node is not None
        _kill(self._site.node)
        begin = time.monotonic()
        self._site.start_node()
        self.recovery_seconds.append(time.monotonic() - begin)


def soak(site: Site, seconds: float, seed: int) -> bool:
    """Feed under fire for so long, then look for every event; True if the verdict is good. Raises SoakError."""
    meps = max(1, round(EVENTS_PER_SECOND * seconds / EVENTS_PER_MEP))
    fed = meps * EVENTS_PER_MEP
    write_meps(site.input, fed)
    consumer = SlowConsumer(site.decisions, seed)
    chaos = Chaos(site, seed)
    site.start_node()
    consumer.start()
    try:
        begin = time.monotonic()
        for number in range(1, FEEDERS + 1):
            site.start_feeder(number)
        while time.monotonic() - begin < seconds and site.running_feeders():
            time.sleep(chaos.pause())
            chaos.strike()
        finish_feeders(site)
        status = site.status()
        if status is None:
            raise SoakError("the node does not answer at the end")
        dropped = site.dropped_decisions()
        stop_node(site)
    finally:
        site.close()
        consumer.stop()
    return report(site, chaos, consumer, fed, status, dropped)


def finish_feeders(site: Site) -> None:
    """Wait until all feeders have got their last acknowledgement. Raises SoakError."""
    end = time.monotonic() + FINISH_SECONDS
    while running := site.running_feeders():
        if time.monotonic() > end:
            raise SoakError(f"feeders {running} have not ended {FINISH_SECONDS:.0f} s after the last blow")
        assert site.node is not None
        if site.node.poll() is not None:
            raise SoakError(f"the node ended by itself with exit code {site.node.returncode}")
        time.sleep(0.1)
    failed = {number: feeder.returncode for number, feeder in site.feeders.items() if feeder.returncode}
    if failed:
        raise SoakError(f"feeders ended with exit codes {failed}")


def stop_node(site: Site) -> None:
    """SIGTERM and a clean exit. Raises SoakError."""
    assert site.node is not None
    site.node.send_signal(signal.SIGTERM)
    try:
        code = site.node.wait(FINISH_SECONDS)
    except subprocess.TimeoutExpired:
        raise SoakError("the node did not drain") from None
    if code:
        raise SoakError(f"the node ended with exit code {code}")


def report(site: Site, chaos: Chaos, consumer: SlowConsumer, fed: int, status: dict[str, Any], dropped: int) -> bool:
    """Print what happened and judge it."""
    found = read_files(site.output)
    lost, invented, repeated = compare(found, fed)
    problems = [*found.problems, *consumer.problems]
    criticals = [line for line in site.log_lines("node") if line.get("level") == "critical"]
    problems += [f"critical log line: {line}" for line in criticals]
    if not closes(status["accounting"]):
        problems.append("the accounting of the last session does not close")
    if lost:
        problems.append(f"{len(lost)} events are lost: {some(lost)}")
    if invented:
        problems.append(f"{len(invented)} events were never fed: {some(invented)}")
    if unnamed := not_named(found, consumer.named()):
        problems.append(f"{len(unnamed)} events lack sources that their decision does not name: {some(unnamed)}")
    if consumer.sessions and consumer.sessions[-1].missed > dropped:
        problems.append(f"{consumer.sessions[-1].missed} decisions are missing, {dropped} were counted as dropped")
    if repeated:
        problems.append(f"{len(repeated)} events are there more than once: {some(repeated)}")
    print(f"blows     {dict(sorted(chaos.done.items()))}")
    if kills := chaos.done["kill_node"]:
        print(f"recovery  {kills} kills of the node, ready again after at most {max(chaos.recovery_seconds):.1f} s")
    print(f"fed       {fed} events in {fed // EVENTS_PER_MEP} MEPs by {FEEDERS} feeders, {site.starts} starts")
    print(f"found     {len(found.complete)} complete, {len(found.incomplete)} incomplete")
    print(
        f"decisions {consumer.taken} taken, {consumer.missed} missed, in {len(consumer.sessions)} sessions; "
        f"{dropped} counted as dropped in the last one"
    )
    for what, classes in status["accounting"].items():
        print(f"{what:<9} of the last session: {classes}")
    for problem in problems:
        print(f"PROBLEM   {problem}")
    print("verdict   " + ("FAILED" if problems else "every event that was fed is accounted for"))
    return not problems


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def main() -> int:
    """Parse the arguments, soak, keep the files where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=None, help="of the blows and faults; default: a new one")
    arguments = parser.parse_args()
    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    print(f"soak      {arguments.seconds:.0f} s, --seed {seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="hltnode-soak-"))
    site = Site(directory, feeders=FEEDERS, rate=EVENTS_PER_SECOND, seed=seed)
    try:
        good = soak(site, arguments.seconds, seed)
    except SoakError as error:
        print(f"verdict   FAILED: {error}")
        good = False
    if good:
        shutil.rmtree(directory)
    else:
        print(f"files     {directory}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
