"""Execution of each kind of fault: generators that yield the seconds until their next step."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.attacks.hostile_peers import Target, write
from tests.attacks.model_attack import KNOWN_SECONDS, NICE
from tests.attacks.programs import Keys, Port, make_program
from tests.soak.collector import Collector
from tests.soak.content import EVENTS_PER_MEP, FEEDERS, SOURCES
from tests.soak.decision_log import DecisionLog
from tests.soak.faults import FEEDER_KINDS, STRANGERS, Kind, PlannedFault
from tests.soak.nodes import SoakNode
from tests.soak.power_cut import CutReport
from tests.soak.runs import Runs
from tests.soak.timeline import Span, Timeline

POLL_SECONDS = 0.05
# Not the monitoring sample: with it the soak follows the decisions, and a slow reader there costs it some of them.
HOSTILE_PORTS = (Port.DATA, Port.CONTROL, Port.DECISIONS, Port.HTTP)
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
        self.hostile_steps = 0
        self.seeds: list[int] = []
        """Seeds of the programs of hostile peers."""
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
            Kind.HOSTILE_PEERS: self._attack_by_program,
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
        """Whether strangers must wait, which act only while all feeders feed, or a feeder must wait for strangers.

        Without keys a stranger may replace an absent feeder, and start a run that no feeder has started (SECURITY.md).
        Peers with many addresses have all unknown addresses refused, so the feeders must be known.
        """
        if fault.kind in STRANGERS:
            node = self._nodes[fault.target]
            feeders_away = any(active.span.kind in FEEDER_KINDS for active in self._active)
            is_new = fault.kind is Kind.HOSTILE_PEERS and self._decides_for(node) < KNOWN_SECONDS
            return feeders_away or is_new or not self._all_feed() or not node.knows_feeders(self._runs.run)
        return fault.kind in FEEDER_KINDS and any(active.span.kind in STRANGERS for active in self._active)

    def _decides_for(self, node: SoakNode) -> float:
        """Seconds since the first decision of a running node."""
        if node.session is None:
            return 0.0
        first = self._decisions.first_after((node.name,), node.session.begin)
        return 0.0 if first is None else time.monotonic() - first

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

    def _attack_by_program(self, fault: PlannedFault) -> Steps:
        node = self._nodes[fault.target]
        seed = self._random.getrandbits(31)
        self.seeds.append(seed)
        ports = {Port.DATA: node.data, Port.CONTROL: node.control, Port.DECISIONS: node.decisions}
        target = Target(
            ports={port.value: urlsplit(endpoint).port or 0 for port, endpoint in ports.items()}
            | {Port.HTTP.value: node.http},
            memory_socket="",
            run=self._runs.run,
            feeders=tuple(f"soak:{number}/{FEEDERS}" for number in range(1, FEEDERS + 1)),
            sources=SOURCES,
            events_per_mep=EVENTS_PER_MEP,
            # Each MEP has one node, and this may be the other one: no fragment of a true MEP is sent again.
            finished_below=0,
        )
        file = node.root.parent / f"hostile.{seed}.json"
        write(file, target, make_program(seed, keys=Keys.NONE, absence=False, ports=HOSTILE_PORTS))
        line = [sys.executable, "-m", "tests.attacks.hostile_peers", str(file), str(fault.seconds)]
        hostile = subprocess.Popen(["nice", "-n", str(NICE), *line], stdout=subprocess.PIPE, text=True, process_group=0)
        while hostile.poll() is None:
            yield POLL_SECONDS
            if not self._all_feed() and hostile.poll() is None:
                # All peers: each is a process of this group.
                os.killpg(hostile.pid, signal.SIGTERM)
        output, _ = hostile.communicate()
        if hostile.returncode not in (0, -signal.SIGTERM):
            self.problems.append(f"the hostile peers ended with exit code {hostile.returncode}, seed {seed}")
        self.hostile_steps += sum(int(row.rpartition(": ")[2]) for row in output.splitlines())

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
