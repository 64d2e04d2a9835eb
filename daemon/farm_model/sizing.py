"""The size of a farm for one site, by its capacity, and configuration files to start from."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hltnode import __version__
from hltnode.client.feeder import HELLO_SECONDS, SILENT_HELLOS
from hltnode.daemon.farm_model.description import FarmDescription, FarmError, parse_description
from hltnode.daemon.farm_model.feasibility import capacity, frame_bytes
from hltnode.daemon.farm_model.measurement import load_measurement
from hltnode.daemon.replay.supervisor import REASSIGN_SECONDS

RESERVE = 0.2
"""Nodes beyond the capacity: at 83 % load the waits stay a few batches long, and a node may be away."""
BUFFER_SECONDS = 10.0
"""A lost node's MEPs move after 3 s; the farm then needs some seconds for what has waited."""
MEP_SECONDS = 0.02
"""Time between two MEPs of one node: short beside the usual timeouts, long beside the cost of a MEP."""
MEP_BYTES = 32 << 20
"""Largest MEP: the default of builder.max_mep_bytes."""
HELD_IDS_SECONDS = SILENT_HELLOS * HELLO_SECONDS + REASSIGN_SECONDS + 2 * HELLO_SECONDS
"""Longest time for which the MEPs of a lost node hold the ids: the feeders notice the loss, the MEPs move, are computed
at other nodes, and all nodes hear of it with the next hellos. All nodes of a farm count the same ids."""
SLOTS = 4
MEPS_OF_A_SLOT = 4
_MIB = 1 << 20
_FEWEST_IDS, _MOST_IDS = 1 << 16, 1 << 24
"""The default of builder.closed_ring, and the largest value."""
_FRAME_BYTES = 16 << 20
"""The default of network.max_frame_bytes."""
_MAX_EVENTS = 4096
"""Events of a batch: GPUs reach their plateau at some hundred, and the default of pipeline.max_events is 4096."""
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kMGT]?)(?:Hz|B)?")
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The needs of a site. node_events_per_second: rate of a node without a measurement; accepted: None: unknown."""

    events_per_second: float
    event_bytes: float
    sources: int
    chain: str
    measurement: Path | None = None
    node_events_per_second: float = 0.0
    accepted: float | None = None


def parse_quantity(text: str, name: str) -> float:
    """A number with k, M, G or T, and with or without Hz or B. Raises FarmError."""
    found = _QUANTITY.fullmatch(text.strip())
    value = float(found[1]) * _FACTORS[found[2]] if found else 0.0
    if value <= 0.0:
        raise FarmError(f"{name} {text!r}: expected a number above 0, such as 1MHz, 250kHz or 60k")
    return value


def sized(site: Site) -> tuple[dict[str, Any], dict[str, str]]:
    """The size of a farm as a JSON object, and the texts of its files by name. Raises FarmError."""
    accepted = site.accepted
    if accepted is None:
        accepted = _accepted_of(site)
    # A first farm without limits but the back end gives the rate of a node.
    one = _with_frames(_description(site, accepted, nodes=1, events_per_mep=_first_events_per_mep(site)))
    of_node = capacity(one)
    nodes = max(1, math.ceil(site.events_per_second * (1 + RESERVE) / of_node.compute))
    events_per_mep = _events_per_mep(site, site.events_per_second / nodes)
    description = _with_frames(_description(site, accepted, nodes=nodes, events_per_mep=events_per_mep))
    of_node = capacity(description)
    least = math.ceil(site.events_per_second / of_node.of_node)
    nodes = max(nodes, math.ceil(site.events_per_second * (1 + RESERVE) / of_node.of_node))
    description = description.with_value("nodes.count", nodes)
    config = description.node_config()
    bytes_per_second = site.events_per_second * site.event_bytes
    result = {
        "nodes": nodes,
        "nodes_at_least": least,
        "reserve": RESERVE,
        "limit": of_node.limit,
        "node_events_per_second": of_node.of_node,
        "events_per_mep": events_per_mep,
        "mep_bytes": description.mep_bytes,
        "meps_per_second": description.meps_per_second,
        "closed_ring": config.builder.closed_ring,
        "node_memory_bytes": config.pipeline.slots * config.pipeline.slot_bytes,
        "buffer_bytes": description.readout.buffer_bytes,
        "buffer_seconds": BUFFER_SECONDS,
        # The rest of the farm must carry the rate while a node is away.
        "node_gbps": bytes_per_second / max(1, nodes - 1) * 8e-9,
        "source_gbps": bytes_per_second / site.sources * 8e-9,
        "accepted": accepted,
        "node_disk_bytes_per_second": bytes_per_second * accepted / max(1, nodes - 1),
        "bytes_per_day": bytes_per_second * accepted * 86_400,
    }
    return result, {"farm.toml": _farm_text(description), "node.toml": _node_text(description)}


def _accepted_of(site: Site) -> float:
    if site.measurement is None:
        raise FarmError("--accepted: expected the part of the events that is written, because there is no measurement")
    return load_measurement(site.measurement, site.chain, __version__).accepted


def _first_events_per_mep(site: Site) -> int:
    return max(1, min(_MAX_EVENTS // MEPS_OF_A_SLOT, int(MEP_BYTES // site.event_bytes)))


def _events_per_mep(site: Site, node_rate: float) -> int:
    """Events of a MEP: those of MEP_SECONDS at one node, within the limits of a slot."""
    return max(1, min(_first_events_per_mep(site), round(node_rate * MEP_SECONDS)))


def _description(site: Site, accepted: float, *, nodes: int, events_per_mep: int) -> FarmDescription:
    largest = max(MEP_BYTES, -(-round(2 * events_per_mep * site.event_bytes) // _MIB) * _MIB)
    service: dict[str, Any] = {"chain": site.chain}
    if site.measurement is None:
        service["events_per_second"] = site.node_events_per_second
    else:
        service["measurement"] = str(site.measurement.absolute())
    return parse_description(
        {
            "readout": {
                "sources": site.sources,
                "events_per_second": site.events_per_second,
                "event_bytes": site.event_bytes,
                "events_per_mep": events_per_mep,
                "buffer_bytes": site.events_per_second * site.event_bytes * BUFFER_SECONDS,
            },
            "nodes": {"count": nodes, "accepted": accepted},
            "service": service,
            "node": {
                "pipeline": {
                    "slots": SLOTS,
                    "slot_bytes": MEPS_OF_A_SLOT * largest,
                    "max_events": MEPS_OF_A_SLOT * events_per_mep,
                    "max_events_per_mep": events_per_mep,
                },
                "builder": {"max_mep_bytes": largest, "closed_ring": _ids(site.events_per_second / events_per_mep)},
            },
        },
        "size",
    )


def _ids(meps_per_second: float) -> int:
    """MEP ids that a node tells apart: a power of two, enough for the time that a lost node holds them."""
    needed = math.ceil(meps_per_second * HELD_IDS_SECONDS)
    return min(_MOST_IDS, max(_FEWEST_IDS, 1 << (needed - 1).bit_length()))


def _with_frames(description: FarmDescription) -> FarmDescription:
    """With few sources, fragments are large: the frames that nodes accept have room for twice the mean."""
    largest = -(-2 * frame_bytes(description) // _MIB) * _MIB
    if largest <= _FRAME_BYTES:
        return description
    largest = min(largest, description.node_config().builder.max_mep_bytes)
    return description.with_value("node.network.max_frame_bytes", largest)


def _farm_text(description: FarmDescription) -> str:
    readout, nodes, service = description.readout, description.nodes, description.service
    given = (
        f"events_per_second = {service.events_per_second!r}"
        if service.measurement is None
        else f"measurement = {_quoted(service.measurement)}\nchain = {_quoted(service.chain)}"
    )
    node = "\n".join(
        f"\n[node.{section}]\n" + "\n".join(f"{key} = {value!r}" for key, value in values.items())
        for section, values in description.node.items()
    )
    return (
        "# The farm for `hltnode farm model`.\n"
        "seconds = 10.0\n\n"
        "[readout]\n"
        f"sources = {readout.sources}\nevents_per_second = {readout.events_per_second!r}\n"
        f"event_bytes = {readout.event_bytes!r}\nevents_per_mep = {readout.events_per_mep}\n"
        f"buffer_bytes = {readout.buffer_bytes!r}\n\n"
        f"[nodes]\ncount = {nodes.count}\naccepted = {nodes.accepted!r}\n\n"
        f"[service]\n{given}\n{node}\n"
    )


def _node_text(description: FarmDescription) -> str:
    sections = {"trigger": {"chain": description.service.chain}, **description.node}
    text = "# One node of the farm; docs/reference/configuration.md has all keys.\n"
    for section, values in sections.items():
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
        text += f"\n[{section}]\n" + "".join(lines)
    return text


def _quoted(text: str) -> str:
    """A string of TOML."""
    return json.dumps(text, ensure_ascii=True)
