"""Execution of each kind of fault: generators that yield the seconds until their next step."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.soak.collector import Collector
from tests.soak.content import EVENTS_PER_MEP
from tests.soak.decision_log import DecisionLog
from tests.soak.faults import FEEDER_KINDS, Kind, PlannedFault
from tests.soak.nodes import SoakNode
from tests.soak.power_cut import CutReport
from tests.soak.runs import Runs
from tests.soak.timeline import Span, Timeline

POLL_SECONDS = 0.05
# The last MEPs of a run, two seconds of data.
END_MEPS = 60

Steps = Iterator[float]


@dataclass(slots=True)
class _Active:
    span: Span
    steps: Steps
    due: float


class Strikes:
    """Executes faults, several at once, on nodes by name and on the feeders."""

    def __init__(
        self,
        nodes: Mapping[str, SoakNode],
        runs: Runs,
        collector: Collector,
        decisions: DecisionLog,
        timeline: Timeline,
        seed: int,
    ) -> None:
        self.cuts: list[tuple[SoakNode, CutReport]] = []
        self.forged: dict[str, int] = {}
        self.problems: list[str] = []
        self._nodes = nodes
        self._runs = runs
        self._collector = collector
        self._decisions = decisions
        self._timeline = timeline
        self._random = random.Random(f"{seed}/strikes")
        self._active: list[_Active] = []
        self._of_kind = {
            Kind.KILL_NODE: self._kill_node,
            Kind.LOSE_NODE: self._kill_node,
            Kind.END_KILL_NODE: self._kill_node,
            Kind.STOP_NODE: self._stop_node,
            Kind.STOP_NODE_LONG: self._stop_node,
            Kind.END_STOP_NODE: self._stop_node,
            Kind.CUT_POWER: self._cut_power,
            Kind.NO_DESCRIPTORS: self._exhaust_descriptors,
            Kind.DIRECTORY_AWAY: self._move_directory,
            Kind.DISK_FULL: self._fill_disk,
            Kind.FORGE: self._forge,
            Kind.KILL_FEEDER: self._kill_feeder,
            Kind.KILL_SUPERVISOR: self._kill_feeder,
            Kind.END_KILL_FEEDER: self._kill_feeder,
            Kind.STOP_FEEDER: self._stop_feeder,
            Kind.STOP_FEEDER_LONG: self._stop_feeder,
            Kind.END_STOP_FEEDER: self._stop_feeder,
        }

    @property
    def active(self) -> int:
        """Number of active faults."""
        return len(self._active)

    def can_strike(self, fault: PlannedFault) -> bool:
        """Whether the target runs without another fault."""
        if self.is_hindered(fault.target) or self._is_kept_apart(fault):
            return False
        if fault.kind in FEEDER_KINDS:
            return self._runs.is_ready(_feeder(fault.target))
        return self._nodes[fault.target].is_running

    def _is_kept_apart(self, fault: PlannedFault) -> bool:
        """Whether forged messages may be sent: only while all feeders feed.

        Without keys a stranger may replace an absent feeder, and start a run that no feeder has started (SECURITY.md).
        """
        if fault.kind is Kind.FORGE:
            feeders_away = any(active.span.kind in FEEDER_KINDS for active in self._active)
            return feeders_away or not self._all_feed() or not self._nodes[fault.target].knows_feeders(self._runs.run)
        return fault.kind in FEEDER_KINDS and any(active.span.kind is Kind.FORGE for active in self._active)

    def _all_feed(self) -> bool:
        """Whether the run has started and is not near its end."""
        decided = self._decisions.highest_mep(self._runs.run)
        return 0 <= decided < self._runs.last_mep - END_MEPS

    def begin(self, fault: PlannedFault) -> None:
        """Start a fault."""
        meps = [node.unacknowledged_meps() for node in self._nodes.values() if not self.is_hindered(node.name)]
        span = self._timeline.strike(fault.kind, fault.target, time.monotonic())
        known = [each for each in meps if each is not None]
        span.in_flight = sum(known) * EVENTS_PER_MEP if known else None
        steps = self._of_kind[fault.kind](fault)
        self._active.append(_Active(span, steps, time.monotonic()))
        self.poll()

    def describe(self) -> str:
        """The active faults, for a message."""
        return ", ".join(f"{active.span.kind} ({active.span.target})" for active in self._active) or "none"

    def poll(self) -> None:
        """Continue the faults that are due."""
        for active in list(self._active):
            now = time.monotonic()
            if now < active.due:
                continue
            seconds = next(active.steps, None)
            if seconds is None:
                active.span.end = time.monotonic()
                self._active.remove(active)
            else:
                active.due = now + seconds

    def is_hindered(self, target: str) -> bool:
        """Whether a process has an active fault."""
        return any(active.span.target == target for active in self._active)

    def _kill_node(self, fault: PlannedFault) -> Steps:
        node = self._nodes[fault.target]
        node.kill()
        yield from self._come_back(node, fault.seconds)

    def _come_back(self, node: SoakNode, seconds: float) -> Steps:
        yield seconds
        node.start()
        # Over when the node runs; `poll` reports a failed start.
        while node.starting_since is not None:
            yield POLL_SECONDS

    def _stop_node(self, fault: PlannedFault) -> Steps:
        node = self._nodes[fault.target]
        node.signal(signal.SIGSTOP)
        yield fault.seconds
        node.signal(signal.SIGCONT)

    def _cut_power(self, fault: PlannedFault) -> Steps:
        node = self._nodes[fault.target]
        with self._collector.lock:
            node.kill()
            report = node.cut_power(self._collector.taken[node.name], self._random)
            self._collector.forget(node.name, report.unnamed)
        self.cuts.append((node, report))
        yield from self._come_back(node, fault.seconds)

    def _exhaust_descriptors(self, fault: PlannedFault) -> Steps:
        node = self._nodes[fault.target]
        node.exhaust_descriptors()
        yield fault.seconds
        node.return_descriptors()

    def _move_directory(self, fault: PlannedFault) -> Steps:
        node = self._nodes[fault.target]
        with self._collector.lock:
            node.move_directory()
        yield fault.seconds
        with self._collector.lock:
            node.return_directory()

    def _fill_disk(self, fault: PlannedFault) -> Steps:
        node = self._nodes[fault.target]
        node.fill_disk()
        yield fault.seconds
        node.empty_disk()

    def _forge(self, fault: PlannedFault) -> Steps:
        node = self._nodes[fault.target]
        command = [
            sys.executable, "-m", "tests.soak.forger", "--data", node.data, "--control", node.control,
            "--decisions", node.decisions, "--monitor", node.monitor, "--http", str(node.http),
            "--run", str(self._runs.run), "--seconds", str(fault.seconds), "--seed", str(self._random.getrandbits(31)),
        ]  # fmt: skip
        forger = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while forger.poll() is None:
            yield POLL_SECONDS
            if not self._all_feed():
                forger.terminate()
        output, _ = forger.communicate()
        if forger.returncode not in (0, -signal.SIGTERM):
            self.problems.append(f"the forger ended with exit code {forger.returncode}")
        for row in output.splitlines():
            name, _, count = row.partition(" ")
            self.forged[name] = self.forged.get(name, 0) + int(count)

    def _kill_feeder(self, fault: PlannedFault) -> Steps:
        number = _feeder(fault.target)
        self._runs.kill_feeder(number)
        yield fault.seconds
        self._runs.restart_feeder(number)

    def _stop_feeder(self, fault: PlannedFault) -> Steps:
        process = self._runs.feeders[_feeder(fault.target)]
        process.send_signal(signal.SIGSTOP)
        yield fault.seconds
        process.send_signal(signal.SIGCONT)


def _feeder(target: str) -> int:
    return int(target.removeprefix("feeder"))
