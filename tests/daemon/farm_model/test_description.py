"""Descriptions of farms: every wrong key and every farm that cannot work is refused with what is missing."""

import contextlib
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.farm_model.description import FarmError, load_description, parse_description
from hltnode.daemon.farm_model.feasibility import capacity, nodes_at_least, require_possible
from tests.daemon.farm_model.farms import described, table

EXAMPLES = Path(__file__).parents[3] / "examples"

CANNOT_WORK: dict[str, tuple[dict[str, Any], str]] = {
    "switch": ({"network": {"switch_bytes_per_second": 9.9e6}}, "network.switch_bytes_per_second: 0.0792 Gb/s"),
    "rack": (
        {"network": {"nodes_of_rack": 1, "rack_bytes_per_second": 4.9e6}},
        "network.rack_bytes_per_second: 0.0392 Gb/s, but the nodes of a rack get 0.04 Gb/s",
    ),
    "link of each node": ({"network": {"rack_bytes_per_second": 4.9e6}}, "network.rack_bytes_per_second: 0.0392 Gb/s"),
    "no sources": ({"readout": {"sources": 0}}, "readout.sources: 0"),
    "too few nodes": ({"readout": {"events_per_second": 90e3}}, "at least 5 nodes are needed"),
    "bursts": ({"burst": {"every_seconds": 1.0, "seconds": 1.0, "factor": 5.0}}, "at least 3 nodes are needed"),
    "slow link": ({"nodes": {"link_bytes_per_second": 4e6}}, "limit: link"),
    "slow disk": ({"nodes": {"disk_bytes_per_second": 4e5}}, "limit: disk"),
    "slow source": ({"readout": {"source_bytes_per_second": 2e6}}, "but a source sends 0.02 Gb/s"),
    "small buffers": ({"readout": {"buffer_bytes": 9999}}, "raise it to at least 10000"),
    "small slots": ({"readout": {"event_bytes": 1e4}}, "raise it to at least 100000"),
    "small batches": ({"readout": {"events_per_mep": 41}}, "node.pipeline.max_events: 40, but a MEP has 41 events"),
    "small MEPs": (
        {"readout": {"events_per_mep": 11}},
        "node.pipeline.max_events_per_mep: 10, but a MEP has 11 events",
    ),
    # 48 bytes of the transport header, 20 of the header of the MFP, 12 and 20 for types and sizes.
    "small frames": (
        {"readout": {"sources": 1, "event_bytes": 6548}},
        "node.network.max_frame_bytes: 65536, but a fragment needs a frame of 65580 bytes",
    ),
}


@pytest.mark.parametrize("name", CANNOT_WORK)
def test_a_farm_that_cannot_work_is_refused_with_the_number_that_is_missing(name: str) -> None:
    changes, expected = CANNOT_WORK[name]
    with pytest.raises(FarmError, match=expected.replace("(", r"\(")):
        require_possible(described(**changes))


def test_a_farm_at_its_limits_is_accepted() -> None:
    require_possible(described())
    require_possible(described(readout={"sources": 2, "event_bytes": 6548}))
    require_possible(described(readout={"events_per_second": 40e3, "source_bytes_per_second": 10e6}))
    require_possible(described(readout={"events_per_second": 90e3, "lifetime_seconds": 10.0}))
    assert nodes_at_least(described(readout={"events_per_second": 40e3})) == 2
    assert nodes_at_least(described(readout={"events_per_second": 41e3})) == 3
    assert capacity(described()).limit == "compute"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"readout": {"source": 4}}, "readout.source: unknown key; did you mean 'sources'"),
    "section": ({"reedout": {}}, "reedout: unknown key; did you mean 'readout'"),
    "key of a node": ({"node": {"pipeline": {"slot": 3}}}, "node.pipeline.slot: unknown key; did you mean 'slots'"),
    "value of a node": ({"node": {"pipeline": {"slots": 1}}}, "node.pipeline.slots"),
    "number": ({"nodes": {"count": 0}}, "nodes.count"),
    "infinite rate": ({"readout": {"events_per_second": float("inf")}}, "readout.events_per_second"),
    "both services": ({"service": {"measurement": "m.json"}}, "one of measurement and events_per_second"),
    "nodes of a fault": (
        {"faults": [{"kind": "kill", "at_seconds": 0, "seconds": 1, "nodes": [0, 2]}]},
        "faults.0.nodes: expected first and last of the nodes 0 to 1, not 0 and 2",
    ),
    "kind of a fault": (
        {"faults": [{"kind": "fire", "at_seconds": 0, "seconds": 1, "nodes": [0, 1]}]},
        "faults.0.kind",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_names_the_key(name: str) -> None:
    changes, expected = WRONG[name]
    with pytest.raises(FarmError) as error:
        described(**changes)
    assert expected in str(error.value)
    assert str(error.value).startswith(("test", "node."))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
sections = st.sampled_from(["seconds", "seed", "readout", "burst", "nodes", "service", "supervisor", "faults", "node"])


@given(st.dictionaries(sections, json_values, max_size=4))
def test_any_table_is_a_description_or_a_farm_error(changes: dict[str, Any]) -> None:
    with contextlib.suppress(FarmError):
        assert parse_description({**table(), **changes}, "any").nodes.count > 0


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_file_is_a_description_or_a_farm_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "farm.toml"
        path.write_bytes(content)
        with pytest.raises(FarmError, match=r"farm\.toml"):
            load_description(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FarmError, match=r"none\.toml: cannot be read: No such file"):
        load_description(tmp_path / "none.toml")


def test_a_value_is_changed_by_its_key() -> None:
    changed = described().with_value("node.pipeline.slots", 5).with_value("nodes.count", 7)
    assert (changed.node_config().pipeline.slots, changed.nodes.count) == (5, 7)
    assert described().with_value("burst", {"every_seconds": 1.0, "seconds": 0.1, "factor": 2}).burst is not None
    for key in ("nodes.cuont", "seconds.more", "nodes"):
        with pytest.raises(FarmError):
            described().with_value(key, 3)


@pytest.mark.parametrize("name", ["farm-lhcb.toml", "farm-small.toml"])
def test_the_examples_can_work_and_lines_of_their_text_are_short(name: str) -> None:
    require_possible(load_description(EXAMPLES / name))
    assert tomllib.loads((EXAMPLES / name).read_text())


def test_a_stop_that_feeders_take_for_a_loss_is_refused() -> None:
    fault = {"kind": "stop", "at_seconds": 0.0, "seconds": 4.5, "nodes": [0, 0]}
    with pytest.raises(FarmError, match=r"faults\.0\.seconds: feeders give up a node that is stopped for 4\.5 s"):
        described(faults=[fault])
    assert described(faults=[{**fault, "seconds": 4.0}]).faults[0].seconds == 4.0
