"""Questions that need several runs: nodes needed, a dead node, policies, placements, sweeps."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.farm_model.description import FarmError, Policy
from hltnode.daemon.farm_model.measures import Latencies, Level
from hltnode.daemon.farm_model.questions import Questions, Runs, answers, nodes_needed, parse_sweep, placements
from hltnode.daemon.farm_model.results import RunRecord, joined, record_of, result_of, run_record, seeds_of
from hltnode.daemon.farm_model.tables import tables_of
from tests.daemon.farm_model.farms import described, run


def test_every_question_has_an_entry_and_a_table() -> None:
    asked = Questions(
        nodes_needed=True,
        dead_node=True,
        policies=True,
        placements=True,
        sweep=("nodes.count=1,2", "readout.events_per_second=10e3,30e3"),
    )
    told: list[str] = []
    result = answers(described(), asked, Runs(told=told.append))
    assert json.loads(json.dumps(result)) == result
    assert result["broken_identities"] == []
    assert result["loss"] == 0.0
    assert result["loss_below"] == pytest.approx(3 / result["meps"]["produced"])
    assert result["nodes_needed"]["nodes"] >= result["nodes_needed"]["at_least"] == 1
    assert result["dead_node"]["meps"]["moved"] > 0
    assert set(result["policies"]) == {policy.value for policy in Policy}
    errors = ["error" in run for run in result["sweep"]]
    assert errors == [False, True, False, False], "one node cannot carry 30 kHz"
    text = "\n".join(table.text() for table in tables_of(result))
    for expected in ("a node dies", "round_robin", "filter farm", "nodes.count=1", "cannot work", "loss below"):
        assert expected in text
    assert "a node dies" in told


def test_the_number_of_nodes_is_the_smallest_without_loss() -> None:
    """Two nodes of 20 kHz carry the mean of 37.5 kHz. In a burst of 50 kHz, the buffers are too small for them."""
    bursts = {"every_seconds": 0.1, "seconds": 0.05, "factor": 2.0}
    needed = nodes_needed(described(readout={"events_per_second": 25e3, "buffer_bytes": 4.5e5}, burst=bursts), Runs())
    assert needed["at_least"] == 2
    assert needed["nodes"] == 3


def test_no_number_of_nodes_helps_against_small_buffers() -> None:
    with pytest.raises(FarmError, match="no number of nodes up to 2"):
        nodes_needed(described(readout={"buffer_bytes": 10_000, "events_per_second": 19e3}), Runs())


def test_bandwidths_of_placements_are_those_of_the_thesis() -> None:
    """D. H. Cámpora Pérez, PhD thesis, University of Seville (2019), table 10.4: 200 kB, 30:1, by back ends each."""
    node = {
        "pipeline": {"slots": 3, "slot_bytes": 1 << 30, "max_events": 1000, "max_events_per_mep": 1000},
        "builder": {"max_mep_bytes": 1 << 29},
        "network": {},
    }
    lhcb = described(
        readout={"sources": 500, "events_per_second": 30e6, "event_bytes": 200_000, "events_per_mep": 1000},
        nodes={"count": 500, "accepted": 1 / 30},
        service={"events_per_second": 62.5e3},
        node=node,
    )
    rows = {row["back_ends"]: row for row in placements(lhcb)}
    for back_ends, into, out in ((1, 100, 3.34), (2, 200, 6.67), (4, 400, 13.33), (6, 600, 20)):
        assert rows[back_ends]["in_gbps"] == pytest.approx(into)
        assert rows[back_ends]["out_of_builder_gbps"] == pytest.approx(out, rel=0.01)
        assert rows[back_ends]["out_to_filter_farm_gbps"] == pytest.approx(into)
    assert rows[1]["servers"] == 480


@pytest.mark.parametrize("text", ["", "nodes.count", "=3", "nodes.count="])
def test_a_wrong_sweep_is_refused(text: str) -> None:
    with pytest.raises(FarmError, match="KEY=VALUE"):
        parse_sweep([text])


def test_a_wrong_value_of_a_sweep_is_refused_before_the_first_run() -> None:
    fault = {"kind": "kill", "at_seconds": 0.0, "seconds": 0.1, "nodes": [1, 1]}
    told: list[str] = []
    with pytest.raises(
        FarmError, match=r"^--sweep nodes.count=1: faults.0.nodes: expected first and last of the nodes"
    ):
        answers(described(faults=[fault]), Questions(sweep=("nodes.count=2,1",)), Runs(told=told.append))
    with pytest.raises(FarmError, match=r"^--sweep nodes.cuont=1: nodes.cuont: unknown key"):
        answers(described(), Questions(sweep=("nodes.cuont=1",)), Runs(told=told.append))
    assert told == []


def test_sweeps_have_typed_values_and_a_bound() -> None:
    assert parse_sweep(["a.b=1,2.5,true,poisson"]) == [("a.b", [1, 2.5, True, "poisson"])]
    with pytest.raises(FarmError, match="1331 runs, expected at most 1000"):
        parse_sweep([f"{key}=1,2,3,4,5,6,7,8,9,10,11" for key in "abc"])


FAULT = {"kind": "kill", "at_seconds": 0.05, "seconds": 9.0, "nodes": [0, 0]}
CONSUMER = {"output": "decisions", "messages_per_second": 1e5}


def lossy_record(seed: int) -> RunRecord:
    """A run with random triggers, losses, moved MEPs and consumers."""
    farm = described(
        seed=seed,
        readout={"arrivals": "poisson", "buffer_bytes": 400_000, "events_per_second": 25e3},
        faults=[FAULT],
        consumers=[CONSUMER],
    )
    return run_record(farm)


def test_the_numbers_of_several_runs_are_joined() -> None:
    first, second = lossy_record(1), lossy_record(2)
    assert first.meps["lost"] > 0
    assert first.meps["moved"] > 0
    both = joined([lossy_record(1), lossy_record(2)])
    assert both.seeds == [1, 2]
    for name, n in both.meps.items():
        assert n == first.meps[name] + second.meps[name], name
    assert both.busy_ns == first.busy_ns + second.busy_ns
    for name, latencies in both.latencies.items():
        one, other = first.latencies[name], second.latencies[name]
        assert (latencies.n, latencies.sum_ns) == (one.n + other.n, one.sum_ns + other.sum_ns)
        assert latencies.max_ns == max(one.max_ns, other.max_ns)
        assert latencies.histogram()[1].sum() == latencies.n
    [consumer] = both.consumers
    assert consumer["sent"] == first.consumers[0]["sent"] + second.consumers[0]["sent"] > 0
    assert consumer["number"] == 1


def test_a_joined_record_has_every_error_and_every_backlog() -> None:
    good, bad = run(), run()
    bad.counts.acknowledged -= 1
    assert len(joined([record_of(good), record_of(bad)]).broken) == 1
    assert len(joined([record_of(bad), record_of(bad)]).broken) == 2
    quiet, growing = run(seconds=0.4), run(seconds=0.4, readout={"events_per_second": 60e3})
    assert not joined([record_of(quiet), record_of(quiet)]).grows
    assert joined([record_of(quiet), record_of(growing)]).grows
    assert joined([record_of(growing), record_of(quiet)]).grows


def test_a_joined_record_has_the_largest_values() -> None:
    small, large = run(), run(seconds=0.4, readout={"events_per_second": 60e3})
    small.wall_seconds, large.wall_seconds = 1.0, 3.0
    small.largest_span, large.largest_span = 5, 7
    assert small.counts.in_farm.largest < large.counts.in_farm.largest
    for farms in ((small, large), (large, small)):
        both = joined([record_of(farm) for farm in farms])
        assert both.largest_in_farm == large.counts.in_farm.largest
        assert (both.wall_seconds, both.largest_span) == (3.0, 7)


def test_the_part_of_busy_back_ends_is_that_of_all_runs() -> None:
    farm = described(seconds=0.5)
    two = result_of(farm, joined([run_record(farm), run_record(farm)]))
    assert two["back_ends_busy"] == pytest.approx(0.25, rel=0.1)
    assert two["loss_below"] == pytest.approx(3 / two["meps"]["produced"])
    assert (two["runs"], two["seconds"], two["seeds"]) == (2, 0.5, [1, 1])


def test_runs_have_seeds_of_their_own_that_do_not_change() -> None:
    assert seeds_of(7, 1) == [7]
    assert seeds_of(7, 3)[:2] == seeds_of(7, 2)
    assert len({*seeds_of(7, 50), *seeds_of(8, 50)}) == 100
    assert max(seeds_of(2**63 - 1, 50)) < 2**63


def test_every_farm_of_a_question_has_all_runs() -> None:
    told: list[str] = []
    asked = Questions(dead_node=True, nodes_needed=True, sweep=("nodes.count=2",))
    farm = described(readout={"arrivals": "poisson"})
    result = answers(farm, asked, Runs(2, told.append))
    assert [result["runs"], result["dead_node"]["runs"], result["sweep"][0]["runs"]] == [2, 2, 2]
    alone = [run_record(farm.with_value("seed", seed)).meps["produced"] for seed in seeds_of(1, 2)]
    assert result["meps"]["produced"] == sum(alone)
    assert alone[0] != alone[1]
    assert told[:4] == ["as described, run 1", "as described, run 2", "a node dies, run 1", "a node dies, run 2"]
    assert "2 runs of 0.2 s" in tables_of(result)[0].title


def test_a_farm_that_cannot_work_ends_the_runs_of_all_but_groups_and_sweeps() -> None:
    with pytest.raises(FarmError, match="are needed"):
        answers(described(readout={"events_per_second": 90e3}), Questions(), Runs(2))


@given(st.text(max_size=40))
def test_any_sweep_is_parsed_or_refused(text: str) -> None:
    try:
        found: Any = parse_sweep([text])
    except FarmError:
        return
    assert found[0][0]


@given(st.lists(st.integers(1_000, 10**15), min_size=1, max_size=300))
def test_quantiles_of_latencies_are_exact_to_one_per_cent(times: list[int]) -> None:
    latencies = Latencies()
    for each in times:
        latencies.add(each)
    assert latencies.mean == pytest.approx(sum(times) / len(times) * 1e-9)
    found = latencies.quantile(0.5)
    if len(times) == 1:
        assert found is None
    else:
        expected = sorted(times)[-(-len(times) // 2) - 1] * 1e-9
        assert found == pytest.approx(expected, rel=0.0101)
    edges, entries = latencies.histogram()
    assert entries.sum() == len(times) == latencies.n
    assert edges[-1] >= max(times) * 1e-9 * 0.999


def test_a_level_has_its_integral_and_its_largest_value() -> None:
    level = Level()
    level.change(10, 2)
    level.change(15, -1)
    level.change(25, 0)
    assert (level.integral, level.largest, level.value) == (2 * 5 + 1 * 10, 2, 1)
