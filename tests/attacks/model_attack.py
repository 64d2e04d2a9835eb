"""Judges a node under a program of attacks, beside two honest feeders that share the sources of a run."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.event_building.accounting import closes
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import iter_records
from tests.attacks.attacked_node import FAKE, MIB, PROMISED, REQUEST_EVENTS, ROOT, AttackedNode, PeakSampler, Resources
from tests.attacks.honest_feeder import EVENTS_PER_MEP, RATE, HonestFeeder, Share
from tests.attacks.hostile_peers import Target, write
from tests.attacks.programs import Keys, Port, Program
from tests.attacks.readiness import LONGEST_REFUSAL_SECONDS, LONGEST_UNFOUNDED_SECONDS, Readiness
from tests.attacks.stall_sampler import Stall
from tests.daemon.fakes import RUN, SOURCES
from tests.daemon.pages import all_metrics, status_page

NICE = 10
SHARES = (Share("honest1", SOURCES[:2], 2), Share("honest2", SOURCES[2:], 2))
TAP_BYTES = 8 * MIB
ANSWER_SECONDS = 60.0
"""Longest wait for something that must happen: much longer than on a busy machine."""
PROBE_SECONDS = 0.1
PROBES = 5
"""Tries of a readiness probe: the HTTP server may close the slowest connection to make room."""
STALL_SECONDS, LEAST_RATE = 1.0, 0.5
PAGE_THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Threads that make pages: the pool of asyncio starts one when all others are busy, and keeps it."""
SPARE_THREADS = 1
"""The thread that draws an event for the status page."""
SPARE_DESCRIPTORS = 2
"""Python, libzmq and the log may have opened some that stay."""
RATE_SECONDS = 3.0
"""Shortest time in which the rate before an attack is measured."""
KNOWN_SECONDS = 6.0
"""Age of the honest connections: while the node refuses unknown addresses, it admits those of older connections."""
PROMISED_TO_PROGRAMS = PROMISED + TAP_BYTES
"""Memory in bytes that the peers of a program may take: the tap has its buffer too."""


@dataclass(slots=True)
class Judgement:
    """What a program has cost. `broken` holds the broken promises that do not depend on the speed of the machine."""

    broken: dict[str, str] = field(default_factory=dict)
    grown_bytes: int = 0
    stall_s: float = 0.0
    stalls: Sequence[Stall] = ()
    honest: float | None = None
    """Rate of the honest feeders during the attack, in parts of their rate before; None if it was not measured."""
    node_processors: float = 0.0
    """Processors that the node used during the attack: much more than usual is the work for the hostile peers."""
    readiness: Readiness = field(default_factory=Readiness)
    steps: Counter[str] = field(default_factory=Counter)

    def broken_with_times(self) -> dict[str, str]:
        """All broken promises, with event loop and rate."""
        broken = dict(self.broken)
        if self.stall_s > STALL_SECONDS:
            broken["event loop"] = "; ".join([f"{self.stall_s:.2f} s", *map(str, self.stalls)])
        if self.honest is not None and self.honest < LEAST_RATE:
            broken["honest rate"] = f"{self.honest:.0%} of the rate without attack"
        if (seconds := self.readiness.unfounded_s) > LONGEST_UNFOUNDED_SECONDS:
            broken.setdefault("readiness", f"the node says for {seconds:.1f} s that it is ready, and finishes no MEP")
        return broken


class ModelAttack:
    """One program against a node of its own.

    Args:
        directory: for the files of the node.
        seconds: length of the attack.
    """

    def __init__(
        self,
        program: Program,
        directory: Path,
        command: tuple[str, ...] = FAKE,
        *,
        seconds: float,
    ) -> None:
        self._program = program
        self._directory = directory
        self._seconds = seconds
        self._judgement = Judgement()
        self._accepts_all = command != FAKE
        self._socket = directory / "memory.socket"
        self._node = AttackedNode(
            directory,
            command,
            with_keys=program.keys is not Keys.NONE,
            encrypt_data=program.keys is Keys.ALL,
            sections=self._sections(directory),
        )
        self._honest: list[HonestFeeder] = []

    def _sections(self, directory: Path) -> str:
        tap = self._tap = free_ports(1)[0]
        sections = f"""
[builder]
min_feeders = {len(SHARES)}
max_feeders = {len(SHARES)}
expected_sources = {list(SOURCES)}
[tap]
endpoint = "tcp://127.0.0.1:{tap}"
buffer_bytes = {TAP_BYTES}
[shared_memory]
socket = "{self._socket}"
"""
        if self._accepts_all:
            trigger = directory / "trigger.toml"
            directory.mkdir(parents=True, exist_ok=True)
            trigger.write_text('[[lines]]\ntype = "Passthrough"\nname = "Hlt1Passthrough"\n')
            sections += f'[trigger]\nfile = "{trigger}"\n'
        return sections

    def judge(self) -> Judgement:
        """Attack the node, end it, and read its files."""
        try:
            self._honest = [HonestFeeder(self._node, share=share) for share in SHARES]
            connected = time.monotonic()
            for honest in self._honest:
                honest.wait_until_served()
            self._await_readiness(ready=True)
            self._start_page_threads()
            usual = self._rate_for(max(RATE_SECONDS, connected + KNOWN_SECONDS - time.monotonic()))
            if not usual:
                raise RuntimeError("the node acknowledges nothing before the attack")
            before, threads, files = self._node.resources(), self._threads(), self._node.open_files()
            began = time.monotonic()
            with PeakSampler(self._node) as sampler:
                rate = self._attack()
            judgement = self._judgement
            judgement.grown_bytes = sampler.peak.rss - before.rss
            if judgement.grown_bytes > PROMISED_TO_PROGRAMS:
                judgement.broken["memory"] = f"+{judgement.grown_bytes // MIB} MiB"
            if not self._node.is_alive:
                judgement.broken["alive"] = f"exit code {self._node.process.poll()}"
                return judgement
            if not self._program.absence:
                judgement.honest = rate / usual
            judgement.stall_s, judgement.stalls = self._node.longest_stall(began)
            self._check_progress()
            self._check_resources(before, threads, files)
            self._finish()
            return judgement
        finally:
            for honest in self._honest:
                honest.stop()
            self._node.kill()

    def _start_page_threads(self) -> None:
        """Request pages until all threads that make them have started: then their number tells a leak."""
        with ThreadPoolExecutor(2 * PAGE_THREADS) as pool:
            before = 0
            while (now := self._threads()) > before:
                before = now
                list(pool.map(lambda _: self._probe_page(), range(4 * PAGE_THREADS)))

    def _probe_page(self) -> None:
        # The server may close the slowest connection to make room.
        with contextlib.suppress(OSError):
            all_metrics(self._node.http)

    def _check_progress(self) -> None:
        """After the attack the node is ready, and its floor rises."""
        broken = self._judgement.broken
        if not self._await_readiness(ready=True):
            broken["readiness"] = f"the node is not ready after the attack: {self._probe()}"
        floor, end = self._floor(), time.monotonic() + ANSWER_SECONDS
        while self._floor() <= floor:
            if time.monotonic() > end:
                broken["progress"] = f"the floor stays at MEP {floor} after the attack; readiness: {self._probe()}"
                return
            time.sleep(PROBE_SECONDS)

    def _floor(self) -> int:
        return min(honest.below for honest in self._honest)

    def _check_resources(self, before: Resources, threads: int, files: Counter[str]) -> None:
        """Descriptors and threads are back at their number."""
        broken = self._judgement.broken
        allowed = Resources(before.rss, before.descriptors + SPARE_DESCRIPTORS)
        # The memory is judged during the attack.
        after = self._node.resources_at_rest(allowed, ANSWER_SECONDS, more=Resources(sys.maxsize, 0))
        if after.descriptors > allowed.descriptors:
            opened = dict(self._node.open_files() - files)
            broken["descriptors"] = f"{after.descriptors - before.descriptors} more: {opened}, {self._connections()}"
        end = time.monotonic() + ANSWER_SECONDS
        while (left := self._threads()) > threads + SPARE_THREADS and time.monotonic() < end:
            time.sleep(PROBE_SECONDS)
        if left > threads + SPARE_THREADS:
            broken["threads"] = f"{threads} before, {left} after"

    def _connections(self) -> str:
        """The TCP connections of the node, for a message."""
        names = {number: name for name, number in self._target().ports.items()}
        found = Counter(
            f"{names.get(each.laddr.port, '?')} {each.status} {each.raddr.ip}"
            for each in psutil.Process(self._node.process.pid).net_connections("tcp")
            if each.raddr
        )
        return ", ".join(f"{n} {connection}" for connection, n in sorted(found.items()))

    def _threads(self) -> int:
        return psutil.Process(self._node.process.pid).num_threads()

    def _rate_for(self, seconds: float) -> float:
        start, before = time.monotonic(), self._acknowledged()
        time.sleep(seconds)
        return (self._acknowledged() - before) / (time.monotonic() - start)

    def _processor_seconds(self) -> float:
        """Processor time that the node has used; 0 if it has ended."""
        try:
            times = psutil.Process(self._node.process.pid).cpu_times()
        except psutil.NoSuchProcess:
            return 0.0
        return float(times.user + times.system)

    def _acknowledged(self) -> int:
        return min(honest.acknowledged for honest in self._honest)

    # During the attack

    def _attack(self) -> float:
        """Run the hostile peers; returns the rate of the honest feeders meanwhile."""
        file = self._directory / "program.json"
        write(file, self._target(), self._program)
        line = [sys.executable, "-m", "tests.attacks.hostile_peers", str(file), str(self._seconds)]
        start, before, used = time.monotonic(), self._acknowledged(), self._processor_seconds()
        with subprocess.Popen(
            ["nice", "-n", str(NICE), *line],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Not a session of its own: the kernel would give that as much of the processors as all processes of this
            # one together (sched_autogroup, sched(7)), and NICE would mean nothing.
            process_group=0,
        ) as hostile:
            try:
                if self._program.absence:
                    self._be_absent()
                self._follow(hostile)
                seconds = time.monotonic() - start
                rate = (self._acknowledged() - before) / seconds
                self._judgement.node_processors = (self._processor_seconds() - used) / seconds
                if self._node.process.poll() is not None:
                    return rate
                output, errors = hostile.communicate(timeout=self._seconds + ANSWER_SECONDS)
            finally:
                # All peers: each is a process of this group.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(hostile.pid, signal.SIGKILL)
        if hostile.returncode:
            raise RuntimeError(f"the hostile peers failed: {errors}")
        for row in output.splitlines():
            kind, _, n = row.rpartition(": ")
            self._judgement.steps[kind] += int(n)
        return rate

    def _target(self) -> Target:
        node = self._node
        ports = {
            Port.DATA: node.data, Port.CONTROL: node.control, Port.DECISIONS: node.decisions,
            Port.EVENTS: node.events, Port.MONITOR: node.pub, Port.TAP: self._tap, Port.HTTP: node.http,
            Port.REQUESTS: node.requests,
        }  # fmt: skip
        return Target(
            ports={port.value: number for port, number in ports.items()},
            memory_socket=str(self._socket),
            run=RUN,
            feeders=tuple(share.name for share in SHARES),
            sources=SOURCES,
            events_per_mep=EVENTS_PER_MEP,
            finished_below=self._floor(),
            request_events=REQUEST_EVENTS,
            tokens=tuple(honest.token for honest in self._honest for _ in honest.share.sources),
        )

    def _follow(self, hostile: "subprocess.Popen[str]") -> None:
        """Compare the readiness with the floor until the attack ends."""
        judgement = self._judgement
        while hostile.poll() is None and self._node.process.poll() is None:
            problems = self._probe()
            if problems is not None:
                judgement.readiness.add(time.monotonic(), problems, self._floor())
            elif self._node.process.poll() is None:
                judgement.broken["health checks"] = f"{PROBES} probes of /readyz without an answer"
            time.sleep(PROBE_SECONDS)
        if (seconds := judgement.readiness.refused_s) > LONGEST_REFUSAL_SECONDS:
            refusal = judgement.readiness.refusal
            judgement.broken["readiness"] = f"the node finishes MEPs for {seconds:.1f} s and is not ready: {refusal}"

    def _be_absent(self) -> None:
        """Kill a feeder: the node must name it, and be ready after its return."""
        absent = self._honest[1]
        absent.stop()
        if not self._await_readiness(ready=False, name=absent.share.name):
            self._judgement.broken["readiness"] = f"the node does not say that it lacks {absent.share.name}"
        first = absent.share
        again = Share(first.name, first.sources, first.feeders, absent.below)
        self._honest[1] = HonestFeeder(self._node, share=again)
        if not self._await_readiness(ready=True):
            self._judgement.broken["readiness"] = f"the node is not ready after the return of {again.name}"

    def _await_readiness(self, *, ready: bool, name: str = "") -> bool:
        """Whether the node says in time that it is ready, or that it lacks a feeder."""
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end and self._node.process.poll() is None:
            problems = self._probe()
            if problems is not None and (not problems if ready else name in problems.get("feeders", "")):
                return True
            time.sleep(PROBE_SECONDS)
        return False

    def _probe(self) -> dict[str, str] | None:
        """The problems of /readyz, none if the node is ready; None without an answer."""
        for _ in range(PROBES):
            try:
                try:
                    page = urllib.request.urlopen(f"http://127.0.0.1:{self._node.http}/readyz", timeout=30)
                except urllib.error.HTTPError as error:
                    page = error
                with page:
                    problems: dict[str, str] = json.load(page)["problems"]
                    return problems
            except (OSError, ValueError):
                continue
        return None

    # After the attack

    def _finish(self) -> None:
        """End the run and the node, and compare the files with what was acknowledged."""
        broken = self._judgement.broken
        # A feeder that was killed follows the other one.
        last = max(honest.acknowledged for honest in self._honest) + round(3 * RATE)
        for honest in self._honest:
            honest.tell_last(last)
        for honest in self._honest:
            if not honest.wait_for_end(ANSWER_SECONDS + last / RATE):
                broken["acknowledgements"] = f"{honest.share.name} gets no acknowledgement of all MEPs up to {last}"
        status = status_page(self._node.http, timeout=ANSWER_SECONDS)
        if status is None or not closes(status["accounting"]):
            broken["accounting"] = "no answer" if status is None else json.dumps(status["accounting"])
        self._node.process.terminate()
        try:
            code = self._node.process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            broken["end"] = f"the node does not end in {ANSWER_SECONDS:.0f} s"
            return
        if code:
            broken["end"] = f"exit code {code}"
        log = self._node.log.read_text(errors="replace")
        if bad := [line for line in log.splitlines() if "Traceback" in line or '"level": "critical"' in line]:
            broken["log"] = bad[0]
        if "acknowledgements" not in broken:
            self._check_files(last)

    def _check_files(self, last: int) -> None:
        """Each accepted event of the acknowledged MEPs is in the files exactly once, with all its sources.

        An event may lack the sources of a feeder that was absent.
        """
        expected = {
            mep * EVENTS_PER_MEP + event
            for mep in range(last + 1)
            for event in range(EVENTS_PER_MEP)
            if self._accepts_all or event % 2
        }
        may_lack = set(SHARES[1].sources) if self._program.absence else set()
        found: Counter[int] = Counter()
        for number, sources in _events(self._node.output):
            found[number] += 1
            if lacking := set(SOURCES) - sources - may_lack:
                self._judgement.broken["content"] = f"event {number} lacks sources {sorted(lacking)}"
        wrong = {
            "lost": sorted(expected - found.keys()),
            "unexpected": sorted(found.keys() - expected),
            "twice": sorted(number for number, n in found.items() if n > 1),
        }
        for what, numbers in wrong.items():
            if numbers:
                self._judgement.broken["output"] = f"{len(numbers)} events {what}: {numbers[:8]}"


def _events(directory: Path) -> Iterator[tuple[int, set[int]]]:
    """Number and sources of each event of the files."""
    for path in sorted(directory.rglob("*.mdf*")):
        for record in iter_records(path.read_bytes()):
            banks = [bank for bank in record.banks() if bank.type == LhcbBankType.TEST_DET]
            numbers = {int.from_bytes(bank.payload[:8], "little") for bank in banks}
            # Banks of different events in one record: no number fits, so the event counts as unexpected.
            yield (numbers.pop() if len(numbers) == 1 else -1), {bank.source_id for bank in banks}
