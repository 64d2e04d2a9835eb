"""Two nodes that may be killed or cut off, a supervisor, a follower: at the end every MEP is written exactly once."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from hltnode.daemon.replay.supervisor import REASSIGN_SECONDS
from tests.daemon.replay.distribution_machine import MEPS, DistributionMachine


@pytest.mark.parametrize("arrives", [[False, False, True], [False, True, False], [True, False, False]])
@pytest.mark.parametrize("killed", [True, False])
def test_an_acknowledgement_that_only_some_connections_got_before_a_loss_costs_nothing(
    arrives: list[bool], killed: bool
) -> None:
    machine = DistributionMachine()
    machine.begin()
    machine.both_processes_feed(4)
    machine.a_node_is_lost_for_long_after_a_batch(0, arrives, killed)
    assert machine.nodes[0].written
    machine.teardown()


def test_a_restarted_follower_has_fragments_of_a_mep_acknowledged_to_it_alone() -> None:
    machine = DistributionMachine()
    machine.begin()
    machine.both_processes_feed(4)
    for connection in range(3):
        machine.frames_arrive(0, connection, 8)
    machine.time_passes(1.0)
    machine.a_batch_is_written(0, [False, False, True])
    assert machine.nodes[0].written
    machine.the_follower_starts()
    machine.a_feeder_says_hello(0, 2)
    for _ in range(4):
        # What a node has acknowledged to it says nothing: the supervisor decides.
        machine.the_follower_produces_a_mep()
    machine.both_processes_feed(4)
    machine.cut(0)
    machine.the_supervisor_looks()
    machine.time_passes(10.0)
    machine.the_supervisor_looks()
    machine.teardown()


def test_late_fragments_of_a_mep_that_went_to_another_node_open_nothing() -> None:
    machine = DistributionMachine()
    machine.begin()
    machine.both_processes_feed(4)
    machine.frames_arrive(0, 2, 8, late=True)
    assert machine.nodes[0].in_flight
    machine.cut(0)
    machine.the_supervisor_looks()
    machine.time_passes(10.0)
    machine.the_supervisor_looks()
    machine.restart(0)
    machine.a_revocation_arrives(0, confirmed=True)
    machine.late_frames_arrive(0)
    builder = machine.nodes[0].builder
    assert builder is not None
    assert builder.open == {}
    machine.teardown()


@pytest.mark.parametrize("follower", [True, False])
@pytest.mark.parametrize("written", [True, False])
def test_a_process_that_is_killed_and_started_while_meps_are_moved_doubles_nothing(
    follower: bool, written: bool
) -> None:
    machine = DistributionMachine()
    machine.begin()
    machine.both_processes_feed(6)
    if written:
        machine.a_node_is_lost_for_long_after_a_batch(0, [False] * 3, killed=False)
    else:
        machine.cut(0)
        machine.the_supervisor_looks()
        machine.time_passes(10.0)
        machine.the_supervisor_looks()
    machine.a_feeder_process_is_killed_and_started(follower)
    machine.restart(1)
    machine.both_processes_feed(6)
    machine.teardown()


def test_a_supervisor_that_is_killed_twice_while_a_node_is_away_revokes_there_what_was_moved() -> None:
    machine = DistributionMachine()
    machine.begin()
    machine.both_processes_feed(6)
    machine.a_node_is_lost_for_long_after_a_batch(0, [False] * 3, killed=True)
    assert machine.nodes[0].written
    for _ in range(2):
        machine.the_supervisor_starts()
        machine.restart(1)
        machine.the_supervisor_assigns_a_mep()
        machine.time_passes(10.0)
        machine.both_processes_feed(6)
        machine.the_supervisor_looks()
        for _ in range(6):
            for connection in range(3):
                machine.a_feeder_says_hello(1, connection)
                machine.frames_arrive(1, connection, 8)
            machine.time_passes(1.0)
            machine.a_batch_is_written(1, [True] * 3)
            machine.the_supervisor_looks()
    machine.teardown()


def test_a_supervisor_killed_before_the_node_hears_of_a_returned_mep_returns_it_again() -> None:
    machine = DistributionMachine()
    machine.begin()
    machine.the_supervisor_assigns_a_mep()
    machine.the_supervisor_assigns_a_mep()
    moved = next(mep for mep, node in machine.memory.assigned().items() if node == 1)
    machine.a_node_is_lost_for_long_after_a_batch(1, [False] * 3, killed=False)
    machine.restart(1)
    machine.a_revocation_arrives(1, confirmed=True)
    machine.a_node_is_lost_for_long_after_a_batch(0, [False] * 3, killed=False)
    assert moved in machine.leading.groups[1].leader.window.to_return
    machine.the_supervisor_starts()
    machine.teardown()


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("away", [0, 1])
@pytest.mark.parametrize("rounds", [1, 2, 3, 5, 8])
def test_an_older_copy_of_what_a_supervisor_remembers_may_double_meps_and_loses_none(
    rounds: int, away: int, moved: bool
) -> None:
    machine = DistributionMachine()
    machine.begin()
    machine.both_processes_feed(4)
    if moved:
        machine.a_node_is_lost_for_long_after_a_batch(away, [False] * 3, killed=False)
    machine.memory.close()
    memory = Path(machine.folder.name, "memory")
    older = memory.read_bytes()
    machine.the_supervisor_starts()
    machine.restart(0)
    machine.restart(1)
    machine.work(rounds)
    machine.kill(away)
    machine.memory.close()
    memory.write_bytes(older)
    machine.outdated = True
    machine.the_supervisor_starts()
    machine.restart(1 - away)
    machine.the_supervisor_looks()
    machine.time_passes(10.0)
    machine.the_supervisor_looks()
    for _ in range(4):
        machine.both_processes_feed(4)
        machine.the_supervisor_looks()
        machine.time_passes(10.0)
    machine.work()
    machine.close()
    assert machine.leading.unacknowledged == machine.following.unacknowledged == 0
    assert not machine.leading.unconfirmed(reachable=True)
    assert set(machine.nodes[0].written_list) | set(machine.nodes[1].written_list) == set(range(MEPS))


def test_a_lost_node_takes_longer_than_one_step_of_the_machine_and_less_than_another() -> None:
    assert 1.0 < REASSIGN_SECONDS < 10.0


TestDistributionMachine = DistributionMachine.TestCase
TestDistributionMachine.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_histories_of_two_nodes_end_with_every_mep_written_once() -> None:
    run_state_machine_as_test(
        DistributionMachine, settings=settings(max_examples=10_000, stateful_step_count=60, deadline=None)
    )
