"""The model of a farm: sources and the supervisor above the nodes, run by the clock of the model.

The supervisor has the classes of a feeder: a send window for each node, the list of assignments, and the choice of a
node. The sources are one feeder, because every MEP has a fragment of each of them.
"""

import time
from collections import deque

import numpy as np

from hltnode.client.feeder import HELLO_SECONDS
from hltnode.client.send_window import SendWindow
from hltnode.daemon.farm_model.clock import Clock
from hltnode.daemon.farm_model.consumers import FarmOutputs
from hltnode.daemon.farm_model.description import FarmDescription, FaultKind, FaultSection
from hltnode.daemon.farm_model.measures import FarmCounts
from hltnode.daemon.farm_model.node_model import NodeModel
from hltnode.daemon.farm_model.node_numbers import PARTS, NodeNumbers, to_ns
from hltnode.daemon.farm_model.policies import LOST, choice_and_share
from hltnode.daemon.farm_model.service_times import Uniform, service_times
from hltnode.daemon.farm_model.sources import MepTimes
from hltnode.daemon.replay.assignment import AssignmentList, node_for_moved
from hltnode.daemon.replay.supervisor import NEWS_SECONDS, REASSIGN_SECONDS
from hltnode.protocol.transport.assignments import MAX_ENTRIES
from hltnode.protocol.transport.feeder_messages import Nack

EMPTYING_SECONDS = 60.0
"""After the beam and the last fault, the farm gets this time to acknowledge what is left."""
_FRAMES = dict.fromkeys(PARTS, b"")
_NO_DELAY = 0


class Farm:
    """One run of the model. Raises FarmError for a measurement that cannot be used."""

    def __init__(self, description: FarmDescription) -> None:
        self.description = description
        self.counts = FarmCounts()
        self.clock = Clock()
        self.wall_seconds = 0.0
        self.waiting_in_first_half = 0
        """Largest number of MEPs that waited for a credit in the first half of the beam."""
        self.waiting_at_end = 0
        self.busy_ns = 0
        """Time of all batches that were done during the beam."""
        self.largest_span = 0
        """Largest number of MEP ids that nodes had to tell apart: from the floor that they knew to the last one."""
        self._told_floor = 0
        readout = description.readout
        seeds = np.random.SeedSequence(description.seed).spawn(3)
        of_times, of_sources, of_stragglers = (np.random.default_rng(seed) for seed in seeds)
        numbers = NodeNumbers.of(description)
        times = service_times(description.service, of_times)
        n_nodes = description.nodes.count
        self.outputs = FarmOutputs(description)
        self.nodes = [NodeModel(i, self.clock, numbers, times, self, self.counts, self.outputs) for i in range(n_nodes)]
        self.windows = [SendWindow() for _ in self.nodes]
        for window in self.windows:
            # As in the supervisor. Otherwise the ranges of acknowledged ids would grow with every MEP.
            window.in_order = n_nodes > 1
        self._choice, self._share_of = choice_and_share(description.supervisor.policy, n_nodes)
        self._list = AssignmentList()
        self._mep_times = MepTimes(description, of_sources)
        self._stragglers = Uniform(of_stragglers)
        self._next_mep = 0
        self._waiting: deque[int] = deque()
        self._produced_ns: dict[int, int] = {}
        self._fragment_ns = int(
            description.mep_bytes / max(1, readout.sources) / (readout.source_bytes_per_second * 1e-9)
        )
        self._source_free_ns = 0
        network = description.network
        self._switch_ns = int(description.mep_bytes / (network.switch_bytes_per_second * 1e-9))
        self._switch_free_ns = 0
        self._rack_ns = int(description.mep_bytes / (network.rack_bytes_per_second * 1e-9))
        self._rack_of = [node // network.nodes_of_rack if network.nodes_of_rack else node for node in range(n_nodes)]
        self._rack_free_ns = [0] * n_nodes
        """Racks, or nodes without racks; the links carry MEPs in the order of their assignment."""
        self._room = max(1, int(readout.buffer_bytes // description.mep_bytes))
        self._retry_ns = [0] * n_nodes
        self._lost_session = [0] * n_nodes
        """Number of losses of each node."""
        self._away = [0] * n_nodes
        """Faults and updates that keep a node away."""
        self._away_ns = [0] * n_nodes
        """Time for which a drained node stays away."""
        self._draining: deque[tuple[FaultSection, deque[int]]] = deque()
        self._faults_in_progress = 0
        self._end_ns = to_ns(description.seconds)
        last = max((fault.at_seconds + fault.seconds for fault in description.faults), default=0.0)
        self._give_up_ns = to_ns(max(description.seconds, last) + EMPTYING_SECONDS)

    def run(self) -> None:
        """Run the beam time, and until no MEP is left or EMPTYING_SECONDS have passed."""
        begin = time.perf_counter()
        for node in self.nodes:
            node.start(0)
        for fault in self.description.faults:
            self.clock.call_at(to_ns(fault.at_seconds), self._begin_fault, fault)
        self.clock.call_at(to_ns(HELLO_SECONDS), self._hello)
        self.clock.call_at(self._end_ns // 2, self._note_first_half)
        self.clock.call_at(self._end_ns, self._note_end)
        # The first MEP comes when the nodes have granted their credits.
        self.clock.call_at(self._mep_times.first_ns, self._produce)
        self.clock.run(self._give_up_ns)
        now_ns = self.clock.now_ns
        self.counts.in_farm.change(now_ns, 0)
        self.counts.waiting.change(now_ns, 0)
        for node in self.nodes:
            if node.is_up:
                node.stop()
        self.wall_seconds = time.perf_counter() - begin

    @property
    def left(self) -> int:
        """MEPs that are not acknowledged."""
        return self.counts.in_farm.value

    def left_latency_ns(self) -> int:
        """Sum of the times that the MEPs that are left have been in the farm."""
        return sum(self.clock.now_ns - since_ns for since_ns in self._produced_ns.values())

    def _note_first_half(self, _: object) -> None:
        self.waiting_in_first_half = self.counts.waiting.largest

    def _note_end(self, _: object) -> None:
        self.waiting_at_end = self.counts.waiting.value
        self.busy_ns = sum(node.back_ends.busy_ns for node in self.nodes)

    # Sources

    def _produce(self, _: object) -> None:
        now_ns, counts = self.clock.now_ns, self.counts
        counts.produced += 1
        if counts.in_farm.value >= self._room:
            counts.lost += 1
        else:
            mep = self._next_mep
            self._next_mep += 1
            self._produced_ns[mep] = now_ns
            counts.in_farm.change(now_ns, 1)
            counts.waiting.change(now_ns, 1)
            self._waiting.append(mep)
            self._dispatch()
        next_ns = self._mep_times.next_ns(now_ns)
        if next_ns is not None and next_ns < self._end_ns:
            self.clock.call_at(next_ns, self._produce)

    def _hello(self, _: object) -> None:
        """The feeders tell each node which MEPs are acknowledged, and which are its own again."""
        floor = self._floor()
        self.largest_span = max(self.largest_span, self._list.next_mep - self._told_floor)
        self._told_floor = floor
        for node, window in zip(self.nodes, self.windows, strict=True):
            if node.is_up:
                returned = window.to_return.ranges()
                node.said_hello(floor, returned)
                for first, last in returned:
                    window.confirm_returned(first, last)
                window.confirm_below(floor)
        now_ns = self.clock.now_ns
        if now_ns < self._end_ns or self.left or self._faults_in_progress:
            self.clock.call_at(now_ns + to_ns(HELLO_SECONDS), self._hello)

    def _floor(self) -> int:
        """Every MEP below this id is acknowledged."""
        next_mep = self._waiting[0] if self._waiting else self._next_mep
        return min((w.first_unacknowledged for w in self.windows if w.unacknowledged), default=next_mep)

    # Supervisor

    def _dispatch(self) -> None:
        """Assign waiting MEPs, in order, while nodes have credits."""
        now_ns = self.clock.now_ns
        while self._waiting and len(self._list.node_of) < MAX_ENTRIES:
            node = self._choice.choose()
            if node is None:
                return
            mep = self._waiting.popleft()
            self.counts.waiting.change(now_ns, -1)
            self._list.assign(mep, node)
            self.windows[node].add(mep, _FRAMES)
            self._send(node)

    def _send(self, node: int) -> None:
        """Send what the credits of a node allow."""
        window, now_ns = self.windows[node], self.clock.now_ns
        while (frames := window.next_frames(len(PARTS))).sources:
            window.sent(now_ns, frames, len(frames.sources))
            self._source_free_ns = max(now_ns, self._source_free_ns) + self._fragment_ns
            ready_ns = max(self._source_free_ns, self._over_network(node, now_ns))
            self.nodes[node].transfer(frames.mep, frames.sources, ready_ns, self._straggle_ns())
        self._set_share(node)

    def _over_network(self, node: int, now_ns: int) -> int:
        """The time at which switch and rack have carried a MEP."""
        rack = self._rack_of[node]
        self._switch_free_ns = max(now_ns, self._switch_free_ns) + self._switch_ns
        self._rack_free_ns[rack] = max(now_ns, self._rack_free_ns[rack]) + self._rack_ns
        return max(self._switch_free_ns, self._rack_free_ns[rack])

    def _straggle_ns(self) -> int:
        readout = self.description.readout
        if readout.straggler_share and self._stragglers.draw() < readout.straggler_share:
            return to_ns(readout.straggler_seconds)
        return _NO_DELAY

    def _set_share(self, node: int) -> None:
        is_connected = self.nodes[node].is_up
        self._choice.set_share(node, self._share_of(self.windows[node]) if is_connected else LOST)

    # Messages of the nodes

    def credited(self, of: tuple[int, int, int]) -> None:
        """A session of a node grants credits."""
        node, session, meps = of
        if session == self.nodes[node].session:
            self.windows[node].credit(meps)
            self._send(node)
            self._dispatch()

    def acknowledged(self, of: tuple[int, tuple[int, ...]]) -> None:
        """A node acknowledges MEPs. It wrote them, so this holds even if it has died since."""
        node, meps = of
        window, now_ns, counts = self.windows[node], self.clock.now_ns, self.counts
        kept = [mep for mep in meps if mep in window]
        for mep in kept:
            window.acknowledge(mep, mep)
            self._list.acknowledged(mep)
            counts.latency.add(now_ns - self._produced_ns.pop(mep))
        counts.acknowledged += len(kept)
        counts.in_farm.change(now_ns, -len(kept))
        self._send(node)
        self._dispatch()

    def refused(self, of: tuple[int, int, Nack]) -> None:
        """A session of a node refuses a part of a MEP: it is sent again later."""
        node, session, nack = of
        if session == self.nodes[node].session:
            self.windows[node].refuse(self.clock.now_ns, nack)
            self._plan_retry(node)

    def _plan_retry(self, node: int) -> None:
        due_ns = self.windows[node].next_retry_ns
        if due_ns is not None and self._retry_ns[node] <= self.clock.now_ns:
            self._retry_ns[node] = due_ns
            self.clock.call_at(max(due_ns, self.clock.now_ns), self._retry, node)

    def _retry(self, node: int) -> None:
        self.windows[node].retry(self.clock.now_ns)
        self._send(node)
        self._plan_retry(node)

    # Faults

    def _begin_fault(self, fault: FaultSection) -> None:
        self._faults_in_progress += 1
        first, last = fault.nodes
        chosen = range(first, last + 1)
        if fault.kind is FaultKind.DRAIN:
            self._draining.append((fault, deque(chosen)))
            if len(self._draining) == 1:
                self._drain_next()
            return
        for node in chosen:
            if fault.kind is FaultKind.KILL:
                self._away[node] += 1
                if self.nodes[node].is_up:
                    self._lose(node)
            elif fault.kind is FaultKind.SLOW:
                self.nodes[node].slowness *= fault.factor
            elif fault.kind is FaultKind.FULL_DISK:
                self.nodes[node].full_disk += 1
            elif fault.kind is FaultKind.STOP and self.nodes[node].is_up:
                self.nodes[node].hold(id(fault))
        self.clock.call_at(self.clock.now_ns + to_ns(fault.seconds), self._end_fault, fault)

    def _end_fault(self, fault: FaultSection) -> None:
        self._faults_in_progress -= 1
        for node in range(fault.nodes[0], fault.nodes[1] + 1):
            model = self.nodes[node]
            if fault.kind is FaultKind.KILL:
                self._come_back(node)
            elif fault.kind is FaultKind.SLOW:
                model.slowness /= fault.factor
            elif fault.kind is FaultKind.FULL_DISK:
                model.full_disk -= 1
                if model.is_up:
                    model.write()
            elif fault.kind is FaultKind.STOP:
                model.release(id(fault))

    def _drain_next(self) -> None:
        """Drain the next node of a rolling update; the fault ends behind the last one."""
        while self._draining:
            fault, nodes = self._draining[0]
            while nodes:
                node = nodes.popleft()
                if self.nodes[node].is_up:
                    self._away_ns[node] = to_ns(fault.seconds)
                    self.nodes[node].drain()
                    return
            self._draining.popleft()
            self._faults_in_progress -= 1

    def drained(self, node: int) -> None:
        """A node has finished its MEPs: it goes away."""
        self._away[node] += 1
        self._lose(node)
        self.clock.call_at(self.clock.now_ns + self._away_ns[node], self._updated, node)

    def _updated(self, node: int) -> None:
        self._come_back(node)
        self._drain_next()

    def _lose(self, node: int) -> None:
        """The connection to a node is lost."""
        was_draining = self.nodes[node].draining
        self.nodes[node].stop()
        self.windows[node].stop()
        self._lost_session[node] += 1
        self._set_share(node)
        self.clock.call_at(
            self.clock.now_ns + to_ns(REASSIGN_SECONDS), self._reassign, (node, self._lost_session[node])
        )
        if was_draining:
            self.nodes[node].draining = False
            self._drain_next()

    def _come_back(self, node: int) -> None:
        """A fault or an update of a node ends: the node returns if no other one keeps it away."""
        self._away[node] -= 1
        if not self._away[node]:
            self._return(node)

    def _return(self, node: int) -> None:
        """A node returns with an empty memory, and knows which MEPs belong to others."""
        window = self.windows[node]
        window.restart()
        revoked = window.to_revoke.ranges()
        self.nodes[node].start(self._floor(), revoked)
        for first, last in revoked:
            window.confirm_revoked(first, last)

    def _reassign(self, of: tuple[int, int]) -> None:
        """Give the MEPs of a lost node to the others."""
        lost, session = of
        if self.nodes[lost].is_up or session != self._lost_session[lost]:
            return
        connected = [node.index for node in self.nodes if node.is_up]
        left = 0
        for mep in self.windows[lost].meps():
            node = node_for_moved(mep, connected, self.windows)
            if node is None:
                left += 1
                continue
            self.windows[node].add(mep, self.windows[lost].revoke(mep))
            self._list.assign(mep, node)
            self.counts.moved += 1
            self._send(node)
        if left and self.clock.now_ns < self._give_up_ns:
            self.clock.call_at(self.clock.now_ns + to_ns(NEWS_SECONDS), self._reassign, of)
