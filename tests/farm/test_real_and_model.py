"""Real nodes and the model of the same farm agree in numbers that no load of the machine changes."""

import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from hltnode.daemon.commands.farm.local.processes import processes
from hltnode.daemon.farm_model.description import FaultKind, Policy
from tests.farm.comparison import GOOD, Row, model_of, ranks_of, run_model, shifted, table_of
from tests.farm.paced_node import EVENT_SECONDS, OVERHEAD_SECONDS
from tests.farm.real import Decided, Fault, Pause, feed, fitted_service, has_credits, metric, real_nodes, wait_for

MEPS = 60
MEP_SECONDS = 0.001
SERVICE = {"events_per_second": 1 / EVENT_SECONDS, "overhead_seconds": OVERHEAD_SECONDS}


@pytest.mark.expensive("runs real nodes for the time of their faults")
@pytest.mark.process
@pytest.mark.loopback
@pytest.mark.timeout(600)
def test_as_many_meps_of_a_stopped_and_killed_node_move_as_in_the_model(tmp_path: Path) -> None:
    """Node 0 stands still with all its credits free: it gets as many MEPs as it has credits, and all of them move."""
    with processes() as started, real_nodes(tmp_path, 2, started) as nodes:
        stopped, other = nodes
        decided = Decided([other.decisions])
        decided.start()
        credits: list[int] = []

        def stop_node() -> None:
            wait_for(lambda: all(has_credits(node) for node in nodes))
            credits.append(int(metric(stopped, "hltnode_credits_outstanding")))
            assert stopped.process is not None
            stopped.process.send_signal(signal.SIGSTOP)

        def kill_node() -> None:
            wait_for(lambda: credits and len(decided.at) == MEPS - credits[0])
            stopped.kill()

        killing = threading.Thread(target=kill_node)
        killing.start()
        report, _ = feed(nodes, tmp_path, MEPS, 0.0, stop_node)
        killing.join()
        decided.end()
        other.stop()
    faults = [
        Fault(kind=FaultKind.STOP, node=0, at=MEP_SECONDS / 2, seconds=4.0),
        Fault(kind=FaultKind.KILL, node=0, at=3.9, seconds=60.0),
    ]
    farm = run_model(model_of(2, MEPS, MEP_SECONDS, faults, SERVICE, 100.0))
    assert [report.reassigned] == credits
    assert (report.meps, report.unacknowledged, report.refused) == (MEPS, 0, {})
    assert (farm.counts.produced, farm.left, farm.counts.refused) == (MEPS, 0, 0)
    assert farm.counts.moved == report.reassigned


def test_the_policies_of_the_model_have_the_order_that_real_credits_make() -> None:
    """A node of a third of the speed gets fewer MEPs by credits, so the farm is faster than with round robin."""
    slow = [Fault(kind=FaultKind.SLOW, node=0, at=0.0, seconds=60.0, factor=3.0)]
    load = 0.7
    seconds = (OVERHEAD_SECONDS + 32 * EVENT_SECONDS) / (4 * 2 * load)
    described = model_of(2, 400, seconds, slow, SERVICE, 100.0)
    mean = {
        policy: run_model(described.with_value("supervisor.policy", policy.value)).counts.latency.mean
        for policy in Policy
    }
    assert mean[Policy.CREDITS] < mean[Policy.ROUND_ROBIN]


def test_a_subscriber_that_pauses_holds_back_all_meps_but_those_in_its_queue() -> None:
    """20 MEPs a second for 5 s; the queue has 10 of them, so the next one waits for the rest of 4 s, and as long as any
    MEP."""

    def longest_s(queue: int) -> float:
        pause = Pause(at=1.0, seconds=4.0, queue=queue)
        farm = run_model(model_of(1, 100, 0.05, [], SERVICE, 100.0, pause))
        [consumers] = farm.outputs.totals.values()
        assert consumers.sent == farm.counts.acknowledged == 100
        return farm.counts.latency.max_ns * 1e-9

    usual = longest_s(1000)
    assert usual < 0.5
    for queue in (10, 40):
        assert 4.0 - queue / 20 <= longest_s(queue) <= 4.0 - queue / 20 + usual


def test_measured_times_of_batches_become_overhead_rate_and_spread() -> None:
    exact = fitted_service([(8, 0.104), (16, 0.128), (32, 0.176)])
    assert exact["overhead_seconds"] == pytest.approx(0.08)
    assert exact["events_per_second"] == pytest.approx(1 / 3e-3)
    assert exact["spread"] == pytest.approx(0.0, abs=1e-9)
    one_size = fitted_service([(8, 0.1), (8, 0.12)])
    assert one_size["events_per_second"] == pytest.approx(8 / 0.11)
    assert one_size["spread"] == pytest.approx(0.01 / 0.11)


def test_the_table_marks_differences_above_the_limit() -> None:
    values = [(100.0, 100.0 * (1 + GOOD)), (100.0, 84.0), (0.0, 0.0), (0.0, 1.0)]
    rows = [Row("quiet", "a", real, model, model, model) for real, model in values]
    # The model with faults that are moved reaches the real value, or nearly.
    rows += [Row("kill", "a", 100.0, 150.0, 90.0, 160.0), Row("kill", "b", 100.0, 150.0, 116.0, 160.0)]
    lines = table_of(rows).text().splitlines()[2:]
    assert [line.endswith("*") for line in lines] == [False, True, False, True, False, True]


def test_the_error_of_a_real_number_counts_only_where_it_reaches_the_model() -> None:
    rows = [
        Row("kill", "moved MEPs", 4.0, 2.0, 2.0, 3.0, 3.0, 5.0),
        Row("kill", "moved MEPs", 4.0, 2.0, 2.0, 2.5, 3.0, 5.0),
        Row("kill", "moved MEPs", 4.0, 6.0, 6.0, 6.0, 3.0, 5.0),
        Row("stop", "p99 [ms]", 759.0, 320.0, 312.0, 331.0, 330.0, 800.0),
    ]
    assert [row.difference for row in rows] == pytest.approx([0.0, -0.5 / 3.0, 0.2, 0.0])
    assert [row.is_good for row in rows] == [True, False, False, True]
    assert " ".join(table_of(rows[:1]).text().splitlines()[-1].split()) == "kill: moved MEPs 4 3 to 5 2 2 to 3 +0.0%"


def test_neighbours_of_a_quantile_are_as_many_ranks_away_as_its_number_varies() -> None:
    # sqrt(650 0.99 0.01) is 2.5, so three ranks; p99 is the 644th of 650. sqrt(650 / 4) is 12.7.
    times = np.random.default_rng(1).permutation(np.arange(1.0, 651.0))
    assert ranks_of(times, 0.99) == (641.0, 647.0)
    assert ranks_of(times, 0.5) == (312.0, 338.0)
    # Of few values they end at the smallest and the greatest.
    assert ranks_of(times[:1], 0.99) == (times[0], times[0])


def test_faults_that_are_moved_stay_behind_the_first_mep() -> None:
    fault = Fault(kind=FaultKind.KILL, node=1, at=0.1, seconds=5.0)
    assert [shifted([fault], by)[0].at for by in (0.2, -0.05, -0.2)] == [pytest.approx(0.3), pytest.approx(0.05), 0.0]
    assert shifted([fault], 0.2)[0].seconds == 5.0
