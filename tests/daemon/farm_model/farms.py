"""Descriptions of small farms for the tests."""

from typing import Any

from hltnode.daemon.farm_model.description import FarmDescription, parse_description
from hltnode.daemon.farm_model.farm import Farm
from hltnode.daemon.farm_model.results import record_of
from hltnode.daemon.farm_model.results import result_of as result_of_record

EVENT_BYTES = 1000
EVENTS_PER_MEP = 10
NODE = {
    "pipeline": {"slots": 3, "slot_bytes": 1 << 20, "max_events": 40, "max_events_per_mep": EVENTS_PER_MEP},
    "builder": {"max_mep_bytes": 65_536},
    "network": {"max_frame_bytes": 65_536},
}


def table(**changes: Any) -> dict[str, Any]:
    """A table of TOML: two nodes of 20 kHz, 10 kHz of events, a MEP each millisecond."""
    values: dict[str, Any] = {
        "seconds": 0.2,
        "readout": {
            "sources": 4,
            "events_per_second": 10e3,
            "event_bytes": EVENT_BYTES,
            "events_per_mep": EVENTS_PER_MEP,
        },
        "nodes": {"count": 2, "accepted": 0.1, "disk_bytes_per_second": 1e8, "link_bytes_per_second": 1e9},
        "service": {"events_per_second": 20e3},
        "node": NODE,
    }
    for key, value in changes.items():
        if isinstance(value, dict):
            values[key] = {**values.get(key, {}), **value}
        else:
            values[key] = value
    return values


def described(**changes: Any) -> FarmDescription:
    return parse_description(table(**changes), "test")


def run(**changes: Any) -> Farm:
    """A farm after its run."""
    farm = Farm(described(**changes))
    farm.run()
    return farm


def result_of(farm: Farm) -> dict[str, Any]:
    """The JSON object of a farm after its run."""
    return result_of_record(farm.description, record_of(farm))
