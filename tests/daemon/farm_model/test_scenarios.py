"""Named variations of a farm: what each of them changes, and their runs in the result."""

import json

import pytest

from hltnode.daemon.farm_model import scenarios
from hltnode.daemon.farm_model.description import FarmDescription, FaultKind
from hltnode.daemon.farm_model.questions import GROUPS, Questions, Runs, answers
from hltnode.daemon.farm_model.tables import tables_of
from tests.daemon.farm_model.farms import described


def only_fault(farm: FarmDescription) -> tuple[FaultKind, tuple[int, int], float, float]:
    [fault] = farm.faults
    return fault.kind, fault.nodes, fault.at_seconds, fault.seconds


def test_faults_strike_the_nodes_of_a_rack_all_nodes_or_one() -> None:
    farm = described(seconds=3.0, nodes={"count": 40}, network={"nodes_of_rack": 7})
    found = [only_fault(each) for each in scenarios.faults(farm).values()]
    assert found == [
        (FaultKind.KILL, (0, 6), 1.0, 3.0 + scenarios.AWAY_SECONDS),
        (FaultKind.STOP, (0, 39), 1.0, scenarios.SWITCH_SECONDS),
        (FaultKind.SLOW, (0, 1), 0.0, 3.0),
        (FaultKind.DRAIN, (0, 39), 1.0, scenarios.RESTART_SECONDS),
        (FaultKind.FULL_DISK, (0, 0), 1.0, 1.0),
    ]
    assert any("nodes 3" in name for name in scenarios.faults(described(nodes={"count": 40})))
    assert only_fault(scenarios.dead_node(farm)) == (FaultKind.KILL, (0, 0), 1.0, 33.0)


def test_a_fault_of_the_description_stays_beside_that_of_the_question() -> None:
    given = {"kind": "slow", "at_seconds": 0.0, "seconds": 1.0, "nodes": [1, 1], "factor": 3.0}
    for farm in scenarios.faults(described(faults=[given])).values():
        assert len(farm.faults) == 2
        assert farm.faults[0].factor == 3.0


def test_loads_have_bursts_random_triggers_and_a_decay() -> None:
    farm = described(seconds=10.0)
    burst, random, fill = scenarios.loads(farm).values()
    assert burst.burst is not None
    assert (burst.burst.every_seconds, burst.burst.factor) == (2.0, 1.5)
    assert burst.burst.seconds == pytest.approx(0.2)
    assert random.readout.arrivals.value == "poisson"
    assert fill.readout.lifetime_seconds == 10.0


def test_back_ends_move_into_fewer_nodes_and_their_number_stays() -> None:
    farms = scenarios.back_ends(described(nodes={"count": 12, "back_ends": 2}))
    assert [(farm.nodes.back_ends, farm.nodes.count) for farm in farms.values()] == [(1, 24), (2, 12), (4, 6), (8, 3)]
    assert list(scenarios.back_ends(described())) == ["1 a node", "2 a node"]


def test_each_group_has_its_runs_in_the_result_and_a_table() -> None:
    farm = described(nodes={"watts": 500.0, "cost": 2.0})
    result = answers(farm, Questions(groups=tuple(GROUPS)), Runs())
    assert json.loads(json.dumps(result)) == result
    assert result["broken_identities"] == []
    for group, make in GROUPS.items():
        assert list(result[group]) == list(make(farm))
    text = "\n".join(table.text() for table in tables_of(result))
    for expected in ("a rolling update", "random triggers", "2 a node", "Power and cost"):
        assert expected in text
    moved = next(run["meps"]["moved"] for name, run in result["faults"].items() if name.startswith("a rack"))
    assert moved > 0
    assert result["watts_per_khz"] == pytest.approx(100.0)


def test_a_variation_that_cannot_work_is_said_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    farms = {"slow": described(service={"events_per_second": 4e3}), "good": described()}
    monkeypatch.setitem(GROUPS, "loads", lambda _: farms)
    result = answers(described(), Questions(groups=("loads",)), Runs())
    assert "nodes.count" in result["loads"]["slow"]["error"]
    assert "error" not in result["loads"]["good"]
    text = "\n".join(table.text() for table in tables_of(result))
    assert "slow: cannot work" in text
