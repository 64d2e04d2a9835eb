"""The identities of a whole farm: each one has an input that breaks it alone."""

import copy
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.commands.farm.local.accounts import NodeAccount, identities, result_of, text_of
from hltnode.protocol.raw_data.mdf import encode_record

SOURCES = 3
FED: dict[str, Any] = {
    "meps": 7,
    "events": 70,
    "fragments": 22,
    "resent": 1,
    "refused": {},
    "reassigned": 0,
    "unacknowledged": 0,
    "seconds": 2.0,
    "error": "",
}


def status(meps: int, accepted: int) -> dict[str, Any]:
    return {
        "events": {"processed": 10 * meps, "accepted": accepted},
        "accounting": {
            "fragments": {"built": SOURCES * meps, "unaccounted": 0},
            "meps": {"complete": meps, "unaccounted": 0},
        },
        "tck": "0x1",
        "backend": "cpu",
    }


@pytest.fixture
def nodes(tmp_path: Path) -> list[NodeAccount]:
    found = []
    for name, meps, accepted in (("a", 4, 2), ("b", 3, 1)):
        path = tmp_path / f"{name}_accepted_0.mdf"
        path.write_bytes(encode_record(b"", run=1) * accepted)
        found.append(NodeAccount(name=name, status=status(meps, accepted), killed=0, files=[path]))
    return found


def broken(fed: dict[str, Any], nodes: list[NodeAccount]) -> list[str]:
    return [each.name for each in identities(fed, SOURCES, nodes) if not each.holds]


def changed(node: NodeAccount, *path: str, value: int) -> NodeAccount:
    of_node = copy.deepcopy(dict(node.status))
    at = of_node
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return NodeAccount(name=node.name, status=of_node, killed=node.killed, files=node.files)


def test_a_farm_without_faults_keeps_every_identity(nodes: list[NodeAccount]) -> None:
    result = result_of(FED, nodes, SOURCES)
    assert result["accounting_closes"]
    assert len(result["identities"]) == 7
    assert result["events_per_second"] == 35.0
    assert "The accounting of the farm closes." in text_of(result)


@pytest.mark.parametrize(
    ("fed", "name"),
    [
        ({"unacknowledged": 1}, "MEPs without acknowledgement"),
        ({"refused": {"corrupt": {"fragments": 1, "meps": 1}}}, "fragments refused for good"),
        ({"events": 71}, "events sent, events processed"),
    ],
)
def test_a_report_of_the_feeder_breaks_its_own_identity(
    nodes: list[NodeAccount], fed: dict[str, Any], name: str
) -> None:
    assert broken({**FED, **fed}, nodes) == [name]


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("accounting", "meps", "unaccounted"), 1, "nodes whose accounting does not close"),
        (("accounting", "meps", "complete"), 3, "MEPs sent, MEPs complete in nodes"),
        (("accounting", "fragments", "built"), 11, "fragments of these MEPs, fragments built"),
        (("events", "processed"), 39, "events sent, events processed"),
        (("events", "accepted"), 3, "events accepted, events in files"),
    ],
)
def test_a_status_of_a_node_breaks_its_own_identity(
    nodes: list[NodeAccount], path: tuple[str, ...], value: int, name: str
) -> None:
    of_farm = [changed(nodes[0], *path, value=value), nodes[1]]
    assert broken(FED, of_farm) == [name]
    text = text_of(result_of(FED, of_farm, SOURCES))
    assert f"BROKEN      {name}: " in text
    assert "It DOES NOT CLOSE." in text


def test_sums_over_sessions_are_not_compared_after_a_lost_session(nodes: list[NodeAccount]) -> None:
    lost = NodeAccount(name="a", status=status(1, 0), killed=1, files=nodes[0].files)
    assert len(identities(FED, SOURCES, [lost, nodes[1]])) == 3
    assert broken(FED, [lost, nodes[1]]) == []
    assert "takes its counters with it" in text_of(result_of(FED, [lost, nodes[1]], SOURCES))


def test_an_error_of_the_feeder_is_no_good_end(nodes: list[NodeAccount]) -> None:
    assert not result_of({**FED, "error": "refused"}, nodes, SOURCES)["accounting_closes"]
