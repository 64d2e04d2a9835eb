"""A soak from start to verdict: two nodes, three feeders, consecutive runs, and continuous faults."""

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hltnode.daemon.event_building.accounting import closes
from tests.soak.absences import Absences
from tests.soak.collector import Collector
from tests.soak.consumer import SlowConsumer
from tests.soak.content import EVENTS_PER_MEP, FEEDER_OF, FEEDERS, SOURCES
from tests.soak.decision_log import DecisionLog, DecisionReader
from tests.soak.faults import END_KINDS, FEEDER_KINDS, RUN_KINDS, STANDSTILLS, Kind, Standing, plan
from tests.soak.matrix import make_rows, render
from tests.soak.nodes import SoakError, SoakNode, can_mount
from tests.soak.runs import Runs, run_lengths
from tests.soak.strikes import Strikes
from tests.soak.timeline import Timeline
from tests.soak.verdict import Allowed, Found, Judge, Judgement, Row

EVENTS_PER_SECOND = 600
# Approximate seconds of data in a run; a soak has at least one run for each kind of fault "at the end".
RUN_SECONDS = 90.0
# At most two faults at a time, so that one node often works.
AT_ONCE = 2
# The end of a run starts this number of MEPs before its last one.
NEAR_THE_END = (0, 3, 30)
# A soak is extended until each kind has struck, at most to this multiple of the requested time.
LONGER = 4
# After the last fault all runs must end within this time.
FINISH_SECONDS = 90.0
# No fault stops the decisions of both nodes for this time, even on a busy machine.
STALL_SECONDS = 120.0
# A feeder that was restarted after the end of its run has detected this by now, or never will.
LEFT_BEHIND_SECONDS = 20.0
MAX_RESTARTS = 5
# After this time all feeders have confirmed the end of their run to a running node.
CONFIRM_SECONDS = 15.0
TURN_SECONDS = 0.02


class _Reader(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    seconds: float
    seed: int
    only: tuple[Kind, ...]
    """The kinds of fault to use; all if empty."""


class Soak:
    """Owns all parts; `run` returns when all runs are over, `report` prints the verdict."""

    def __init__(self, directory: Path, options: Options) -> None:
        self.timeline = Timeline()
        self.problems: list[str] = []
        self._options = options
        self._directory = directory
        self._decisions = DecisionLog()
        self._skipped = {} if can_mount(directory) else {Kind.DISK_FULL: "skipped: needs root and mount"}
        kinds = [kind for kind in (options.only or Kind) if kind not in self._skipped]
        # Both fsync policies are tested: a power cut loses no acknowledged event, or at most events of open files.
        self.nodes = {
            name: SoakNode(
                name,
                directory / name,
                self.timeline,
                feeders=FEEDERS,
                fsync=fsync,
                sources=SOURCES if name == "a" else None,
                tmpfs=name == "a" and Kind.DISK_FULL in kinds,
            )
            for name, fsync in (("a", "flush"), ("b", "file"))
        }
        targets = {kind: self._feeders if kind in FEEDER_KINDS else tuple(self.nodes) for kind in Kind}
        targets[Kind.DISK_FULL] = ("a",)
        targets[Kind.KILL_SUPERVISOR] = self._feeders[:1]
        targets[Kind.KILL_FEEDER] = self._feeders[1:]
        in_run = [kind for kind in RUN_KINDS if kind in kinds]
        at_end = [kind for kind in END_KINDS if kind in kinds]
        self._kinds = frozenset((*in_run, *at_end))
        self._in_run = plan(options.seed, in_run, targets, options.seconds)
        self._at_end = plan(options.seed, at_end, targets, options.seconds)
        mean = min(RUN_SECONDS, options.seconds / max(2, len(at_end) + 1))
        self.runs = Runs(
            directory,
            self._each_node,
            run_lengths(options.seed, mean * EVENTS_PER_SECOND / EVENTS_PER_MEP),
            rate=EVENTS_PER_SECOND,
            seed=options.seed,
            wire=not options.only,
        )
        self.collector = Collector(directory / "collected", {n.name: n.output for n in self._each_node}, options.seed)
        self.consumers = {n.name: SlowConsumer(n.decisions, options.seed) for n in self._each_node}
        self._reader = DecisionReader({n.name: n.monitor for n in self._each_node}, self._decisions)
        self.strikes = Strikes(self.nodes, self.runs, self.collector, self._decisions, self.timeline, options.seed)
        self._random = random.Random(f"{options.seed}/near the end")
        self._restarts = dict.fromkeys(self.nodes, 0)
        self._left_behind = 0
        self._closed: dict[str, list[int]] = {name: [] for name in self.nodes}
        self._accounts: dict[str, dict[str, Any]] = {}
        self._dropped: dict[str, int] = {}

    @property
    def _feeders(self) -> tuple[str, ...]:
        return tuple(f"feeder{number}" for number in range(1, FEEDERS + 1))

    @property
    def _each_node(self) -> Sequence[SoakNode]:
        return tuple(self.nodes.values())

    def run(self) -> None:
        """Feed all runs under faults, then stop the nodes."""
        readers: tuple[_Reader, ...] = (self._reader, *self.consumers.values(), self.collector)
        for node in self._each_node:
            node.start()
        while not all(node.is_running for node in self._each_node):
            self._poll_nodes()
            time.sleep(TURN_SECONDS)
        for reader in readers:
            reader.start()
        try:
            self._strike_and_feed()
            self._close_runs()
            self._end_nodes()
        finally:
            for reader in readers:
                reader.stop()
            self.runs.close()
            for node in self._each_node:
                node.close()

    def _strike_and_feed(self) -> None:
        next_fault = next(self._in_run, None)
        end_fault, end_run = next(self._at_end, None), 0
        near = 0
        self.runs.start_next()
        started = time.monotonic()
        while not self._decisions.last_time and time.monotonic() < started + STALL_SECONDS:
            self._poll_nodes()
            time.sleep(TURN_SECONDS)
        begin = due = last_start = time.monotonic()
        while True:
            time.sleep(TURN_SECONDS)
            now = time.monotonic()
            self._poll_nodes()
            self.strikes.poll()
            goes_on = now < begin + self._options.seconds or (
                self._has_kinds_left() and now < begin + LONGER * self._options.seconds + FINISH_SECONDS
            )
            is_due = end_run != self.runs.run and self._is_near_the_end(near)
            if end_fault is not None and is_due and self.strikes.can_strike(end_fault):
                self.strikes.begin(end_fault)
                end_fault, end_run = next(self._at_end), self.runs.run
                near = self._random.choice(NEAR_THE_END)
            is_due = goes_on and now >= due and self.strikes.active < AT_ONCE
            if next_fault is not None and is_due and self.strikes.can_strike(next_fault):
                self.strikes.begin(next_fault)
                next_fault = next(self._in_run)
                due = time.monotonic() + next_fault.pause
            if self.runs.is_over:
                if not goes_on:
                    break
                self.runs.start_next()
                last_start = time.monotonic()
            idle = now - max(self._decisions.last_time, last_start, self.runs.last_restart)
            if idle > LEFT_BEHIND_SECONDS and self._all_are_decided() and self.runs.are_left_behind():
                self._close_behind()
                last_start = now
            elif idle > STALL_SECONDS:
                self._give_up()
        while self.strikes.active:
            time.sleep(TURN_SECONDS)
            self._poll_nodes()
            self.strikes.poll()

    def _give_up(self) -> None:
        """Report a run that does not end, close it as an operator does, and continue with the next one."""
        run = self.runs.run
        self.problems.append(
            f"no decision for {STALL_SECONDS:.0f} s: feeders {self.runs.give_up()} of run {run} "
            "did not end; what they did not deliver is lost"
        )
        self._close_at_nodes()

    def _all_are_decided(self) -> bool:
        return self._decisions.highest_mep(self.runs.run) >= self.runs.last_mep

    def _close_behind(self) -> None:
        """Close a finished run for feeders that were killed after their last confirmation, as an operator does."""
        self._left_behind += self.runs.excuse_running()
        self._close_at_nodes()

    def _close_at_nodes(self) -> None:
        """Close the current run on every node that knows it."""
        for node in self._each_node:
            if node.is_running and not self.strikes.is_hindered(node.name):
                with suppress(SoakError):
                    node.close_run(self.runs.run)

    def _close_run(self, node: SoakNode, run: int) -> None:
        self._closed[node.name].append(run)
        try:
            node.close_run(run)
        except SoakError as error:
            self.problems.append(str(error))

    def _has_kinds_left(self) -> bool:
        return self._kinds > {span.kind for span in self.timeline.spans}

    def _is_near_the_end(self, meps: int) -> bool:
        """Whether only the last MEPs of the current run are undecided, or a feeder has ended."""
        decided = self._decisions.highest_mep(self.runs.run) >= self.runs.last_mep - meps
        return decided or len(self.runs.running()) < len(self.runs.feeders)

    def _poll_nodes(self) -> None:
        """Report processes that failed without a fault of the soak, and restart them as a service supervisor does."""
        for node in self._each_node:
            try:
                node.poll()
            except SoakError as error:
                self.problems.append(f"{error}; faults then: {self.strikes.describe()}")
            if node.is_down and not self.strikes.is_hindered(node.name) and self._restarts[node.name] < MAX_RESTARTS:
                self._restarts[node.name] += 1
                node.start()

    def _close_runs(self) -> None:
        """Wait until the feeders have confirmed the end of the run to each node; close it on a node that missed
        this."""
        for node in self._each_node:
            end = time.monotonic() + CONFIRM_SECONDS
            while (left := node.runs_left()) and time.monotonic() < end:
                time.sleep(TURN_SECONDS)
            for run in left:
                ended = self.runs.ended.get(run)
                if ended is None or not self.timeline.was_hindered(node.name, ended - CONFIRM_SECONDS, ended):
                    self.problems.append(f"run {run} is not over for node {node.name}, which ran at its end")
                self._close_run(node, run)

    def _end_nodes(self) -> None:
        for node in self._each_node:
            status = node.status()
            if status is None:
                self.problems.append(f"node {node.name} does not answer at the end")
            else:
                self._accounts[node.name] = status["accounting"]
                self._dropped[node.name] = node.dropped_decisions()
            if node.is_running:
                try:
                    node.end(FINISH_SECONDS)
                except SoakError as error:
                    self.problems.append(str(error))

    # The verdict

    def report(self) -> bool:
        """Read all files, print the results and the verdict; True if the verdict is good."""
        self.problems += [*self.collector.check(), *self.runs.problems, *self.strikes.problems]
        found, quarantine = self._read_files()
        absences = Absences(self.timeline, self.runs.records(), FEEDER_OF, tuple(self.nodes))
        judge = Judge(self.runs.fed, found, quarantine, self._decisions, self.timeline, absences, self._allowed())
        judgement = judge.judge()
        for node in self._each_node:
            self._check_node(node)
        times: dict[Row, int] = {
            Standing.WIRE: sum(sum(report["injected"].values()) for report in self.runs.reports()),
            Standing.COLLECT: sum(map(len, self.collector.taken.values())),
            Standing.CHANGE_RUN: len(self.runs.fed) - 1,
            Standing.SLOW_CONSUMER: sum(consumer.pauses for consumer in self.consumers.values()),
        }
        rows = make_rows(judgement, self.timeline, self._decisions, tuple(self.nodes), times, self._skipped)
        shown = [row for row in rows if not isinstance(row.row, Kind) or row.row in self._kinds or row.note]
        print(render(shown))
        self._print_totals(judgement, found, quarantine)
        problems = [*self.problems, *judgement.problems]
        problems += [f"{row.row}: has not struck" for row in rows if row.row in self._kinds and not row.times]
        for problem in problems:
            print(f"PROBLEM   {problem}")
        print("verdict   " + ("FAILED" if problems else "every event that was fed is accounted for"))
        return not problems

    def _read_files(self) -> tuple[Found, Found]:
        found, quarantine = Found(), Found()
        for node in self._each_node:
            for path in sorted([*node.root.rglob("*.mdf*"), *self.collector.place(node.name).rglob("*.mdf*")]):
                aside = "quarantine" in path.parts
                if aside or path.suffix == ".mdf":
                    (quarantine if aside else found).read(path)
                elif path.is_file():
                    found.read(path)
                    self.problems.append(f"node {node.name}: {path.name} is not finished")
        # Files in quarantine may be cut anywhere.
        quarantine.problems.clear()
        return found, quarantine

    def _allowed(self) -> Allowed:
        """Events that a power cut may take from open files, and MEPs that a feeder reported as not confirmed."""
        allowed = Allowed()
        for node, cut in self.strikes.cuts:
            if node.fsync == "file":
                allowed.lost.update(dict.fromkeys(cut.open_events, Kind.CUT_POWER))
        nodes = {node.data: node.name for node in self._each_node}
        for report in self.runs.reports():
            allowed.revoked.read(report, nodes)
        allowed.revoked.spans.update(self.runs.spans())
        return allowed

    def _check_node(self, node: SoakNode) -> None:
        consumer = self.consumers[node.name]
        self.problems += consumer.problems
        if node.name in self._accounts and not closes(self._accounts[node.name]):
            self.problems.append(f"node {node.name}: the accounting of the last session does not close")
        if consumer.sessions and consumer.sessions[-1].missed > (dropped := self._dropped.get(node.name, 0)):
            missed = consumer.sessions[-1].missed
            self.problems.append(f"node {node.name}: {missed} decisions are missing, {dropped} were counted as dropped")
        for line in node.log_lines():
            if line.get("level") == "critical" and not self._is_expected(node, line):
                self.problems.append(f"node {node.name}: critical log line: {line}")

    def _is_expected(self, node: SoakNode, line: dict[str, Any]) -> bool:
        """Whether a fault on the node explains a line of its log."""
        struck = {span.kind for span in self.timeline.spans if span.target == node.name}
        match line["event"], line.get("reason"):
            case ("machine_was_down" | "journal_damaged", _) | ("quarantined", "damaged"):
                return Kind.CUT_POWER in struck
            case "events_missing", _:
                return Kind.CUT_POWER in struck and node.fsync == "file"
            case "output_directory_moved", _:
                return Kind.DIRECTORY_AWAY in struck
            case "quarantined", "revoked":
                return not struck.isdisjoint(STANDSTILLS)
        return False

    def _print_totals(self, judgement: Judgement, found: Found, quarantine: Found) -> None:
        runs, collector = self.runs, self.collector
        print(
            f"fed       {runs.events_fed()} events in {len(runs.fed)} runs, {FEEDERS} feeders in {runs.starts} starts, "
            f"to {len(self.nodes)} nodes in {len(self.timeline.sessions)} sessions"
        )
        incomplete = judgement.incomplete_explained.total() + judgement.incomplete_unexplained.total()
        print(
            f"found     {len(found.places)} events: {judgement.complete} complete, {incomplete} incomplete; "
            f"in quarantine {len(quarantine.places)}"
        )
        print(
            f"collected {sum(map(len, collector.taken.values()))} files in {collector.times} times, "
            f"{collector.taken_again} of them came back after a power cut"
        )
        for node in self._each_node:
            cuts = [cut for cut_node, cut in self.strikes.cuts if cut_node is node]
            print(
                f"power     node {node.name} (fsync {node.fsync}): {len(cuts)} cuts took "
                f"{sum(cut.bytes_lost for cut in cuts)} bytes and {sum(cut.names_undone for cut in cuts)} names"
            )
        print(f"forged    {sum(self.strikes.forged.values())} lies: {self.strikes.forged}")
        print(f"hostile   {self.strikes.hostile_steps} steps of peers, programs of seeds {self.strikes.seeds}")
        for name, consumer in self.consumers.items():
            print(f"decisions of node {name}: {consumer.taken} taken, {consumer.missed} missed by the slow consumer")
        print(
            f"closed    by an operator: runs {self._closed} that their node missed; "
            f"{self._left_behind} feeders were killed after their last confirmation"
        )
        for name, accounts in self._accounts.items():
            for what, classes in accounts.items():
                print(f"accounts  node {name}, {what} of the last session: {classes}")

    def keep_files(self) -> None:
        """Keep all files on the disk, for the analysis of a failure."""
        (self._directory / "faults.txt").write_text("\n".join(map(str, self.timeline.spans)) + "\n")
        (self._directory / "sessions.txt").write_text("\n".join(map(str, self.timeline.sessions)) + "\n")
        for node in self._each_node:
            node.keep_files()

    def close(self) -> None:
        """Unmount the file systems."""
        for node in self._each_node:
            node.unmount()
