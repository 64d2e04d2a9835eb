"""The model of a farm: identities that hold in every run, and what faults, buffers and policies do."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.daemon.farm_model.description import FaultKind, Policy
from hltnode.daemon.farm_model.results import broken_identities
from hltnode.daemon.farm_model.tables import tables_of
from hltnode.daemon.replay.supervisor import REASSIGN_SECONDS
from tests.daemon.farm_model.farms import EVENT_BYTES, EVENTS_PER_MEP, NODE, described, result_of, run

MEP_BYTES = EVENT_BYTES * EVENTS_PER_MEP

faults = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([kind.value for kind in FaultKind]),
        "at_seconds": st.floats(0.0, 0.06),
        "seconds": st.sampled_from((0.0, 0.01, 0.05, 4.0)),
        "nodes": st.sampled_from(([0, 0], [1, 1], [0, 1])),
        "factor": st.floats(1.0, 20.0),
    }
)


@settings(max_examples=25, deadline=None)
@given(
    policy=st.sampled_from(list(Policy)),
    happened=st.lists(faults, max_size=3),
    seed=st.integers(0, 100),
    load=st.floats(0.1, 1.5),
    arrivals=st.sampled_from(("regular", "poisson")),
    buffer_meps=st.integers(1, 60),
    back_ends=st.integers(1, 3),
    straggler_seconds=st.sampled_from((0.0, 0.002, 2.0)),
)
def test_meps_fragments_and_littles_law_are_accounted_for_in_every_run(
    policy: Policy,
    happened: list[dict[str, Any]],
    seed: int,
    load: float,
    arrivals: str,
    buffer_meps: int,
    back_ends: int,
    straggler_seconds: float,
) -> None:
    farm = run(
        seconds=0.1,
        seed=seed,
        readout={
            "events_per_second": load * 40e3,
            "arrivals": arrivals,
            "buffer_bytes": buffer_meps * MEP_BYTES,
            "straggler_share": 0.2,
            "straggler_seconds": straggler_seconds,
        },
        nodes={"back_ends": back_ends},
        supervisor={"policy": policy.value},
        faults=happened,
    )
    counts = farm.counts
    assert broken_identities(farm) == []
    assert counts.produced > 0
    assert farm.left == 0, "all nodes return, so every MEP is acknowledged in the end"
    assert counts.latency.n == counts.acknowledged == counts.produced - counts.lost
    assert counts.waiting.value == 0
    assert counts.in_farm.largest <= buffer_meps


def test_broken_identities_are_found() -> None:
    farm = run()
    assert broken_identities(farm) == []
    farm.counts.acknowledged += 1
    assert "acknowledged" in broken_identities(farm)[0]
    farm.counts.acknowledged -= 1
    farm.counts.latency.sum_ns += 1
    assert "Little's law" in broken_identities(farm)[0]
    farm.counts.latency.sum_ns -= 1
    farm.nodes[1].accounting_closes = False
    assert broken_identities(farm) == ["node 1: the accounting does not close"]


def test_the_same_seed_gives_the_same_run_and_another_one_does_not() -> None:
    def latencies(seed: int) -> int:
        return run(seed=seed, readout={"arrivals": "poisson"}).counts.latency.sum_ns

    assert latencies(1) == latencies(1)
    assert latencies(1) != latencies(2)


def test_meps_of_a_dead_node_move_after_three_seconds_and_none_is_lost() -> None:
    fault = {"kind": "kill", "at_seconds": 0.1, "seconds": 30.0, "nodes": [0, 0]}
    farm = run(faults=[fault])
    assert farm.counts.moved > 0
    assert (farm.counts.lost, farm.left) == (0, 0)
    longest = farm.counts.latency.max_ns * 1e-9
    assert REASSIGN_SECONDS < longest < REASSIGN_SECONDS + 0.5
    assert run().counts.moved == 0


def test_a_node_that_returns_before_its_meps_move_gets_them_again() -> None:
    fault = {"kind": "kill", "at_seconds": 0.1, "seconds": 1.0, "nodes": [0, 0]}
    farm = run(faults=[fault])
    assert (farm.counts.moved, farm.left) == (0, 0)
    assert 1.0 < farm.counts.latency.max_ns * 1e-9 < 1.2


def test_a_mep_can_return_to_the_node_that_lost_it() -> None:
    """Node 0 dies, its MEPs move to node 1, which dies next with a full disk: they move back to node 0."""
    farm = run(
        faults=[
            {"kind": "full_disk", "at_seconds": 0.05, "seconds": 30.0, "nodes": [1, 1]},
            {"kind": "kill", "at_seconds": 0.1, "seconds": 4.0, "nodes": [0, 0]},
            {"kind": "kill", "at_seconds": 5.0, "seconds": 40.0, "nodes": [1, 1]},
        ]
    )
    assert farm.counts.moved > 5
    assert farm.left == 0
    assert 7.9 < farm.counts.latency.max_ns * 1e-9 < 20.0, "before node 1 and its disk are back"


def test_a_node_stays_away_until_the_last_of_its_faults_ends() -> None:
    """The second fault of node 0 ends first. A full disk lasts in the same way."""
    kills = [
        {"kind": "kill", "at_seconds": 0.0, "seconds": 2.0, "nodes": [0, 1]},
        {"kind": "kill", "at_seconds": 0.0, "seconds": 0.5, "nodes": [0, 0]},
    ]
    farm = run(seconds=0.1, faults=kills)
    assert farm.left == 0
    assert farm.counts.latency.mean > 1.85, "every MEP waits for 2 s"
    assert [node.session for node in farm.nodes] == [4, 4], "start, end, start, end"
    assert run(seconds=0.1, faults=[{**fault, "kind": "full_disk"} for fault in kills]).counts.latency.mean > 1.85


def test_a_node_that_dies_twice_hears_of_all_revoked_meps_each_time() -> None:
    faults = [{"kind": "kill", "at_seconds": at, "seconds": 3.5, "nodes": [0, 0]} for at in (0.5, 5.0)]
    farm = run(seconds=6.0, readout={"events_per_second": 1e3}, faults=faults)
    assert farm.counts.moved > 1
    assert [window.to_revoke.ranges() for window in farm.windows] == [[], []]
    assert farm.left == 0


@pytest.mark.parametrize(("closed_ring", "is_enough"), [(200, False), (1000, True)])
def test_live_nodes_refuse_meps_while_a_dead_one_holds_more_ids_than_they_tell_apart(
    closed_ring: int, is_enough: bool
) -> None:
    """100 MEPs a second, whose ids are held for more than three seconds."""
    farm = run(
        seconds=6.0,
        readout={"events_per_second": 1e3},
        faults=[{"kind": "kill", "at_seconds": 0.5, "seconds": 30.0, "nodes": [0, 0]}],
        node={**NODE, "builder": {**NODE["builder"], "closed_ring": closed_ring}},
    )
    assert (farm.counts.refused == 0) is is_enough
    assert (farm.counts.lost, farm.counts.incomplete, farm.left) == (0, 0, 0)
    assert farm.counts.moved > 0
    result = result_of(farm)
    assert result["ids"]["accepted_span"] == closed_ring
    assert (result["ids"]["largest_span"] <= closed_ring) is is_enough
    title = "Nodes refused MEPs: more ids were in use than node.builder.closed_ring"
    assert (title in [table.title for table in tables_of(result)]) is not is_enough


def test_back_ends_are_busy_for_the_part_of_the_beam_that_they_compute() -> None:
    assert result_of(run(seconds=0.5))["back_ends_busy"] == pytest.approx(0.25, rel=0.1)
    assert 0.8 < result_of(run(seconds=0.5, readout={"events_per_second": 80e3}))["back_ends_busy"] <= 1.0


def test_a_run_with_losses_shows_no_bound_on_the_loss() -> None:
    lossy = run(seconds=0.4, readout={"events_per_second": 80e3, "buffer_bytes": 50 * MEP_BYTES})
    assert lossy.counts.lost > 0
    assert result_of(lossy)["loss_below"] is None
    assert result_of(run())["loss_below"] == pytest.approx(3 / run().counts.produced)


def test_a_rolling_update_drains_one_node_after_the_other_and_moves_no_mep() -> None:
    fault = {"kind": "drain", "at_seconds": 0.05, "seconds": 0.05, "nodes": [0, 1]}
    farm = run(seconds=0.4, faults=[fault])
    assert (farm.counts.moved, farm.counts.lost, farm.left) == (0, 0, 0)
    assert [node.session for node in farm.nodes] == [4, 4], "start, end, start, end"
    assert farm.counts.latency.max_ns < 0.2e9, "a node is there at any time"


def test_a_stopped_node_keeps_its_meps_and_continues_where_it_was() -> None:
    fault = {"kind": "stop", "at_seconds": 0.05, "seconds": 1.0, "nodes": [0, 0]}
    farm = run(faults=[fault])
    assert (farm.counts.moved, farm.counts.incomplete, farm.left) == (0, 0, 0)
    assert [node.session for node in farm.nodes] == [2, 2], "start, end"
    assert 0.9 < farm.counts.latency.max_ns * 1e-9 < 1.1
    # The other node takes the rest: only the credits of the stopped one wait.
    times, n = farm.counts.latency.histogram()
    waited = n[times > 0.5].sum()
    assert 0 < waited <= 12


def test_a_stop_that_ends_leaves_a_node_stopped_by_another_fault_alone() -> None:
    faults = [
        {"kind": "stop", "at_seconds": 0.05, "seconds": 0.2, "nodes": [0, 0]},
        {"kind": "stop", "at_seconds": 0.1, "seconds": 1.0, "nodes": [0, 0]},
    ]
    assert 1.0 < run(faults=faults).counts.latency.max_ns * 1e-9 < 1.1


def test_a_stop_does_not_count_for_the_deadlines_of_feeders() -> None:
    """The last fragment comes 0.1 s late, and the node stands still for far longer than a MEP may wait."""
    late = {"straggler_share": 1.0, "straggler_seconds": 0.1, "events_per_second": 1e3}
    fault = {"kind": "stop", "at_seconds": 0.05, "seconds": 4.0, "nodes": [0, 1]}
    assert run(readout=late, faults=[fault]).counts.incomplete == 0


def test_a_node_that_dies_while_it_is_stopped_loses_what_waits_for_it() -> None:
    faults = [
        {"kind": "stop", "at_seconds": 0.05, "seconds": 4.0, "nodes": [0, 0]},
        {"kind": "kill", "at_seconds": 1.0, "seconds": 10.0, "nodes": [0, 0]},
    ]
    farm = run(faults=faults)
    assert farm.counts.moved > 0
    assert (farm.left, broken_identities(farm)) == (0, [])


def test_a_full_disk_holds_meps_until_it_has_room() -> None:
    fault = {"kind": "full_disk", "at_seconds": 0.05, "seconds": 0.5, "nodes": [0, 1]}
    farm = run(faults=[fault])
    assert farm.left == 0
    assert 0.45 < farm.counts.latency.max_ns * 1e-9 < 0.8
    assert farm.counts.waiting.largest > 0, "the credits end"


def test_meps_above_the_buffers_of_the_sources_are_lost_and_counted() -> None:
    fault = {"kind": "full_disk", "at_seconds": 0.0, "seconds": 0.3, "nodes": [0, 1]}
    farm = run(readout={"buffer_bytes": 50 * MEP_BYTES}, faults=[fault])
    assert farm.counts.in_farm.largest == 50
    assert farm.counts.lost == farm.counts.produced - farm.counts.acknowledged > 100


def test_a_mep_without_its_last_fragment_is_closed_by_the_deadlines_of_the_builder() -> None:
    late = run(seconds=0.05, readout={"straggler_share": 1.0, "straggler_seconds": 30.0})
    assert late.counts.incomplete == late.counts.produced
    assert late.left == 0
    in_time = run(seconds=0.05, readout={"straggler_share": 1.0, "straggler_seconds": 0.02})
    assert in_time.counts.incomplete == 0
    assert in_time.counts.build.mean > 0.02


def test_credits_send_fewer_meps_to_a_slow_node_than_round_robin() -> None:
    slow = {"kind": "slow", "at_seconds": 0.0, "seconds": 10.0, "nodes": [0, 0], "factor": 5.0}
    latency = {
        policy: run(seconds=0.5, supervisor={"policy": policy.value}, faults=[slow]).counts.latency.mean
        for policy in Policy
    }
    assert latency[Policy.CREDITS] < latency[Policy.ROUND_ROBIN]
    assert latency[Policy.LEAST_LOADED] < latency[Policy.ROUND_ROBIN]


def test_more_back_ends_compute_at_the_same_time() -> None:
    load = {"service": {"events_per_second": 6e3}, "readout": {"arrivals": "poisson"}, "seconds": 0.5}
    one, two = run(**load), run(**load, nodes={"back_ends": 2})
    assert one.counts.service_wait.mean > 0.0
    assert two.counts.service_wait.mean < one.counts.service_wait.mean / 2


def test_meps_share_the_switch_and_the_link_of_their_rack() -> None:
    """MEPs of 10 kB come in bursts of four nodes' credits, over links that carry one in 0.5 ms."""
    load = {"readout": {"events_per_second": 10e3}, "nodes": {"count": 4}, "seconds": 0.5}
    slow = 2e7

    def build(**network: Any) -> float:
        farm = run(**load, network=network)
        assert (farm.left, broken_identities(farm)) == (0, [])
        return farm.counts.build.mean

    free = build()
    # The first fragment comes at once, and the last one when the slowest link has carried the MEP.
    assert build(switch_bytes_per_second=slow) == pytest.approx(free + 0.5e-3, rel=0.2)
    assert build(nodes_of_rack=2, rack_bytes_per_second=slow) == pytest.approx(free + 0.5e-3, rel=0.2)
    assert build(rack_bytes_per_second=slow) == pytest.approx(free + 0.5e-3, rel=0.2)
    # Two MEPs that come together wait for each other in one switch, and not in two racks.
    together = {**load, "burst": {"every_seconds": 0.1, "seconds": 0.01, "factor": 4.0}}
    switch = run(**together, network={"switch_bytes_per_second": slow}).counts.build
    racks = run(**together, network={"nodes_of_rack": 1, "rack_bytes_per_second": slow}).counts.build
    one_rack = run(**together, network={"nodes_of_rack": 4, "rack_bytes_per_second": slow}).counts.build
    assert switch.max_ns == one_rack.max_ns > 2 * racks.max_ns


def test_bursts_and_the_decay_of_a_fill_change_the_number_of_meps() -> None:
    assert run().counts.produced == pytest.approx(200, abs=1)
    burst = run(burst={"every_seconds": 0.1, "seconds": 0.05, "factor": 2.0})
    assert burst.counts.produced == pytest.approx(300, abs=4)
    decay = run(readout={"lifetime_seconds": 0.2})
    assert decay.counts.produced == pytest.approx(200 * (1 - 1 / 2.71828), abs=3)


def test_a_backlog_that_grows_is_reported() -> None:
    assert not result_of(run(seconds=0.4))["grows"]
    assert result_of(run(seconds=0.4, readout={"events_per_second": 60e3}))["grows"]


def test_the_work_for_a_mep_does_not_grow_with_the_number_of_nodes() -> None:
    def calls_of_a_mep(nodes: int) -> float:
        farm = run(seconds=0.1, nodes={"count": nodes}, readout={"events_per_second": 5e3 * nodes})
        return farm.clock.calls / farm.counts.produced

    assert calls_of_a_mep(100) == pytest.approx(calls_of_a_mep(10), rel=0.1)


def test_the_memory_of_a_farm_does_not_grow_with_its_meps() -> None:
    """The ids of one node lie between those of the other; a hello confirms that all ids below a floor are done."""
    farm = run(seconds=0.9)
    assert farm.counts.acknowledged > 800
    assert [len(window.acked.ranges()) for window in farm.windows] == [1, 1]
    assert [node.builder.history.lines() for node in farm.nodes] == [[], []]


def test_the_environment_does_not_change_a_farm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_PIPELINE__SLOTS", "9")
    assert described().node_config().pipeline.slots == 3
