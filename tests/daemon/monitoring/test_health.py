"""Alive and ready, and why not."""

from __future__ import annotations

from hltnode.daemon.monitoring.health import LOOP_STALL_NS, PIPELINE_STALL_NS, Condition, Health


def ready_node() -> Health:
    return Health(
        loop_tick_ns=0, pipeline_tick_ns=0, feeders_expected=2, configured=True, warmed_up=True, feeders_connected=2
    )


def test_a_configured_warm_node_with_its_feeders_is_ready() -> None:
    assert ready_node().problems(0) == {}


def test_a_new_node_is_alive_and_names_the_missing_conditions() -> None:
    health = Health(loop_tick_ns=0, pipeline_tick_ns=0, feeders_expected=2)
    assert health.liveness_problems(0) == {}
    assert set(health.problems(0)) == {Condition.CONFIGURED, Condition.WARMED_UP, Condition.FEEDERS}
    assert health.problems(0)[Condition.FEEDERS] == "0 of 2 feeders connected"


def test_a_loop_that_stalls_is_not_alive() -> None:
    health = ready_node()
    assert health.liveness_problems(LOOP_STALL_NS) == {}
    assert set(health.liveness_problems(LOOP_STALL_NS + 1)) == {Condition.LOOP}


def test_a_pipeline_that_stalls_is_not_alive() -> None:
    health = ready_node()
    health.loop_tick_ns = PIPELINE_STALL_NS + 1
    assert health.liveness_problems(PIPELINE_STALL_NS) == {}
    assert set(health.liveness_problems(PIPELINE_STALL_NS + 1)) == {Condition.PIPELINE}


def test_the_pipeline_may_be_silent_while_the_back_end_warms_up() -> None:
    health = ready_node()
    health.warmed_up = False
    health.loop_tick_ns = 10 * PIPELINE_STALL_NS
    assert health.liveness_problems(10 * PIPELINE_STALL_NS) == {}


def test_a_full_disk_and_a_drain_end_readiness_but_not_life() -> None:
    health = ready_node()
    health.disk_problem = "/data: No space left on device"
    health.draining = True
    assert health.problems(0) == {Condition.DISK: "/data: No space left on device", Condition.SERVING: "draining"}
    assert health.liveness_problems(0) == {}


def test_built_meps_without_acknowledgement_make_the_node_unhealthy_and_do_not_end_it() -> None:
    health = ready_node()
    health.unacknowledged_since_ns = 0
    health.output_problem = "events has waited for its consumer for 31.0 s"
    limit = health.unhealthy_after_ns
    health.loop_tick_ns = health.pipeline_tick_ns = limit + 1
    assert health.health_problems(limit) == {}
    assert health.health_problems(limit + 1) == {
        Condition.ACKNOWLEDGEMENTS: f"no built MEP acknowledged for 30.0 s: {health.output_problem}"
    }
    assert health.liveness_problems(limit + 1) == {}
    assert Condition.ACKNOWLEDGEMENTS in health.problems(limit + 1)


def test_a_long_refusal_of_the_disk_is_unhealthy() -> None:
    health = ready_node()
    health.disk_problem = "/data: No space left on device"
    health.disk_problem_since_ns = 5
    limit = 5 + health.unhealthy_after_ns
    health.loop_tick_ns = health.pipeline_tick_ns = limit + 1
    assert health.health_problems(limit) == {}
    assert set(health.problems(limit)) == {Condition.DISK}
    assert health.health_problems(limit + 1) == {Condition.DISK: "/data: No space left on device, for 30.0 s"}


def test_a_run_that_lacks_feeders_ends_readiness_with_their_names_and_the_time() -> None:
    health = ready_node()
    health.run_waits, health.run_waits_seconds = "run 7 waits for feeders: 1 of 2 are connected; missing: b", 61.4
    assert health.health_problems(0) == {}
    assert health.problems(0) == {Condition.FEEDERS: f"{health.run_waits}; for 61 s"}
