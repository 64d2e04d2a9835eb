"""A new supervisor assigns nothing before every node has told which MEPs it has, or is lost."""

from pathlib import Path

import pytest

from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.daemon.replay.assignment import DONE
from hltnode.daemon.replay.assignment_memory import AssignmentMemory
from hltnode.daemon.replay.nodes import NodeGroup, Nodes
from hltnode.daemon.replay.supervisor import REASSIGN_SECONDS, Supervisor
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Welcome
from tests.client.test_feeder import RecordedConnection
from tests.daemon.fakes import RUN
from tests.daemon.manual_clock import ManualClock

CREDITS = 100


class Process:
    """A supervising process with two nodes; its memory is that of the processes before it."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self.memory = AssignmentMemory(path, run=RUN, nodes=["0", "1"])
        self.feeders = [self._feeder() for _ in range(2)]
        groups = [NodeGroup(str(node), [feeder]) for node, feeder in enumerate(self.feeders)]
        self.supervisor = Supervisor(Nodes(groups, self.clock), self.memory)

    def _feeder(self) -> Feeder:
        identity = FeederIdentity(name="f", run=RUN, sources=(1,), events_per_mep=4, max_fragment_bytes=60_000)
        return Feeder(RecordedConnection(), identity, clock=self.clock)

    def node_speaks(self, node: int, *acknowledged: int) -> None:
        feeder = self.feeders[node]
        feeder.hello()
        feeder.take(Ack(RUN, tuple((mep, mep) for mep in acknowledged)))
        feeder.take(Welcome("n", "session", RUN, 60_000, 1))
        feeder.take(Credit(RUN, CREDITS))

    def pass_seconds(self, seconds: float) -> None:
        self.clock.now_ns += round(seconds * 1e9)


@pytest.fixture
def earlier(tmp_path: Path) -> list[int | None]:
    """The nodes of the MEPs 0 to 3 in an earlier process."""
    process = Process(tmp_path / "memory")
    for node in range(2):
        process.node_speaks(node)
    nodes = [process.supervisor.node_for(mep) for mep in range(4)]
    process.memory.close()
    assert set(nodes) == {0, 1}
    return nodes


@pytest.mark.parametrize("late", [0, 1])
def test_nothing_is_assigned_before_the_late_node_has_spoken(tmp_path: Path, late: int) -> None:
    process = Process(tmp_path / "memory")
    assert process.supervisor.node_for(0) is None
    process.node_speaks(1 - late)
    assert process.supervisor.node_for(0) is None
    process.pass_seconds(REASSIGN_SECONDS - 0.1)
    assert process.supervisor.node_for(0) is None
    process.node_speaks(late, 0)
    assert process.supervisor.node_for(0) == DONE, "the late node has it"
    assert process.supervisor.node_for(1) in (0, 1)
    process.memory.close()


@pytest.mark.parametrize("late", [0, 1])
def test_meps_of_an_earlier_process_wait_for_the_late_node_and_stay_at_theirs(
    tmp_path: Path, earlier: list[int | None], late: int
) -> None:
    process = Process(tmp_path / "memory")
    process.node_speaks(1 - late)
    assert [process.supervisor.node_for(mep) for mep in range(5)] == [None] * 5
    acknowledged = earlier.index(late)
    process.node_speaks(late, acknowledged)
    expected = [DONE if mep == acknowledged else node for mep, node in enumerate(earlier)]
    assert [process.supervisor.node_for(mep) for mep in range(4)] == expected
    process.memory.close()


def test_a_node_that_does_not_come_delays_the_first_assignment_by_the_time_of_a_lost_one(tmp_path: Path) -> None:
    process = Process(tmp_path / "memory")
    process.node_speaks(0)
    assert process.supervisor.node_for(0) is None
    process.pass_seconds(REASSIGN_SECONDS)
    assert process.supervisor.node_for(0) == 0
    process.memory.close()
