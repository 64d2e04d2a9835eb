"""The nodes that a process feeds, its part among several processes, and its connections."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import zmq
import zmq.asyncio

from hltnode.client.fault_injection import FaultInjector, FaultPlan
from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.shared_memory import SharedMemory
from hltnode.client.sockets import FeederKeys, connect_to_node, control_endpoint
from hltnode.daemon.replay.assignment_memory import AssignmentMemory, AssignmentMemoryError
from hltnode.daemon.replay.feeder_log import FeederLog
from hltnode.daemon.replay.finished_runs import FinishedRuns
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import MepStream
from hltnode.daemon.replay.nodes import NodeGroup, Nodes
from hltnode.daemon.replay.single_node import share
from hltnode.daemon.replay.supervisor import Supervisor
from hltnode.protocol.transport.messages import MAX_NAME_LENGTH, is_name

# The default of the node: network.max_frame_bytes without the transport header.
MAX_FRAGMENT_BYTES = 16 * 1024 * 1024 - 40


def make_identities(
    stream: MepStream, name: str, connections: int, part: str | None, chain: str, *, follows_run: bool = False
) -> list[FeederIdentity]:
    """The identities of the connections of this process, whose data are for `chain`.

    follows_run: the process feeds another run before. Raises FeedError for an invalid part.
    """
    shares = share(stream.sources, connections)
    mine = range(len(shares))
    if part is not None:
        match = re.fullmatch(r"(\d+)/(\d+)", part)
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= len(stream.sources):
            raise FeedError(f"--part {part}: expected I/N with 1 <= I <= N <= {len(stream.sources)} sources")
        shares = share(stream.sources, int(match[2]))
        mine = range(int(match[1]) - 1, int(match[1]))
    longest = f"{name}:{len(shares)}/{len(shares)}"
    if not is_name(longest):
        raise FeedError(
            f"--name: {longest[:80]!r} is not a valid feeder name: "
            f"expected up to {MAX_NAME_LENGTH} letters, digits and . _ : / -"
        )
    return [
        FeederIdentity(
            name=f"{name}:{i + 1}/{len(shares)}",
            run=stream.run,
            sources=shares[i],
            events_per_mep=stream.events_per_mep,
            max_fragment_bytes=MAX_FRAGMENT_BYTES,
            feeders=len(shares),
            chain=chain,
            input=stream.input_name,
            follows_run=follows_run,
        )
        for i in mine
    ]


@dataclass(frozen=True, slots=True)
class Site:
    """Endpoints of the nodes, and the role of this process among the feeders."""

    nodes: tuple[tuple[str, str], ...]
    """(data endpoint, control endpoint) of each node."""
    supervisor: str | None
    follows: bool
    """True for a process that follows the supervisor in another one."""
    memory: Path | None
    """File for the assignments of the supervisor; None: the default."""
    keys: FeederKeys
    runs: tuple[int, ...] = ()
    """The runs of the input, in the order in which they are sent."""

    @classmethod
    def of(
        cls,
        data: list[str],
        control: list[str] | None,
        supervisor: str | None,
        part: str | None,
        memory: Path | None,
        keys: FeederKeys,
        runs: Sequence[int] = (),
    ) -> "Site":
        """Build from the command line; `runs` are those of the input. Raises FeedError for inconsistent options."""
        try:
            control = control or [control_endpoint(endpoint) for endpoint in data]
        except ValueError as error:
            raise FeedError(f"--control is needed: {error}") from error
        if len(control) != len(data):
            raise FeedError(f"--control: expected one for each --to, {len(data)} in total")
        if len(set(data)) != len(data):
            raise FeedError("--to: expected each node once")
        if len(data) > 1 and part is not None and supervisor is None:
            raise FeedError("--supervisor is needed: several processes must share one assignment of MEPs to nodes")
        follows = supervisor is not None and part is not None and not part.startswith("1/")
        if memory is not None and (follows or len(data) == 1) and len(runs) < 2:
            raise FeedError(
                "--memory: expected only for an input of several runs, or for the process that assigns MEPs to several "
                "nodes"
            )
        return cls(tuple(zip(data, control, strict=True)), supervisor, follows, memory, keys, tuple(runs))

    def connect(
        self,
        context: zmq.asyncio.Context,
        identities: list[FeederIdentity],
        faults: FaultPlan | None,
        seed: int,
        memory: SharedMemory | None,
    ) -> list[list[Feeder]]:
        """The feeders of each node. `memory` is the shared memory that nodes on this machine read.

        Each feeder has its own sequence of injected faults, independent of the distribution over processes.
        """
        by_node = [
            [
                Feeder(
                    connect_to_node(context, data, control, self.keys, memory),
                    identity,
                    faults=None if faults is None else FaultInjector(faults, f"{seed}/{number}/{identity.sources[0]}"),
                    report=FeederLog(identity.name),
                )
                for identity in identities
            ]
            for number, (data, control) in enumerate(self.nodes)
        ]
        for feeders in by_node:
            for feeder in feeders:
                feeder.node_takes_others = partial(_takes_one, feeders)
        return by_node

    def share_nodes(self, feeders: list[list[Feeder]]) -> Nodes | None:
        """The shared state of the feeders of several nodes; None for one node without a supervisor."""
        if len(self.nodes) == 1 and self.supervisor is None:
            return None
        return Nodes([NodeGroup(data, mine) for (data, _), mine in zip(self.nodes, feeders, strict=True)])

    def supervise(self, nodes: Nodes, memory: AssignmentMemory, context: zmq.asyncio.Context) -> Supervisor:
        """The supervisor of these nodes. Raises FeedError if its endpoint cannot be bound."""
        run = nodes.feeders[0].identity.run
        at = self.runs.index(run) if run in self.runs else 0
        earlier, later = self.runs[:at], self.runs[at + 1 :]
        try:
            return Supervisor(nodes, memory, context, self.supervisor, earlier=earlier, later=later)
        except zmq.ZMQError as error:
            raise FeedError(f"--supervisor {self.supervisor}: {error.strerror}") from error

    def open_memory(self, identity: FeederIdentity) -> AssignmentMemory | None:
        """The decisions of an earlier process with the same role; None if this process makes no decisions.

        Raises AssignmentMemoryError.
        """
        if self.follows or (len(self.nodes) == 1 and self.supervisor is None):
            return None
        endpoints = [data for data, _ in self.nodes]
        path = self.memory
        if path is not None and len(self.runs) > 1:
            path = path.with_name(f"{path.name}-{identity.run}")
        elif path is None and len(endpoints) > 1:
            path = default_memory(identity, endpoints)
        return AssignmentMemory(path, run=identity.run, nodes=endpoints, input_name=identity.input)

    def open_finished_runs(self, identity: FeederIdentity) -> FinishedRuns:
        """The record of the runs of an interrupted replay of this feeder. Raises AssignmentMemoryError, FeedError."""
        if self.memory is not None:
            return FinishedRuns(self.memory.with_name(f"{self.memory.name}-runs"))
        digest = _digest_of(identity, [data for data, _ in self.nodes])
        return FinishedRuns(_state_folder() / f"replay-runs-{digest}.json")


def default_memory(identity: FeederIdentity, endpoints: Sequence[str]) -> Path:
    """The default file for the assignments of this run, name and nodes. Raises AssignmentMemoryError."""
    return _state_folder() / f"replay-{identity.run}-{_digest_of(identity, endpoints)}.sqlite"


def _digest_of(identity: FeederIdentity, endpoints: Sequence[str]) -> str:
    return sha256(" ".join([identity.name, *endpoints]).encode()).hexdigest()[:12]


def _state_folder() -> Path:
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hltnode"
    except RuntimeError as error:
        raise AssignmentMemoryError("this user has no home: give --memory FILE, or set XDG_STATE_HOME") from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AssignmentMemoryError(f"{folder}: {error.strerror}; give --memory FILE") from error
    return folder


def _takes_one(feeders: Sequence[Feeder]) -> bool:
    return any(feeder.is_connected for feeder in feeders)
