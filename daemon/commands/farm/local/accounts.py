"""The accounting of a whole farm: what the feeder sent, what the nodes took, and what is in the files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hltnode.daemon.event_building.accounting import closes
from hltnode.protocol.raw_data.mdf import iter_records


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAccount:
    """A node at the end. status: of its last session; killed: sessions that ended without a status."""

    name: str
    status: Mapping[str, Any]
    killed: int
    files: Sequence[Path]
    """Files of accepted events, of all sessions."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Two numbers that must be equal."""

    name: str
    left: int
    right: int

    @property
    def holds(self) -> bool:
        """Whether they are equal."""
        return self.left == self.right


def records_in(files: Sequence[Path]) -> int:
    """Number of records in files."""
    return sum(1 for path in files for _ in iter_records(path.read_bytes()))


def identities(fed: Mapping[str, Any], sources: int, nodes: Sequence[NodeAccount]) -> list[Identity]:
    """The identities of a farm.

    A killed session takes its counters with it. Then only those remain that need no sum over all sessions.

    Args:
        fed: the report of the supervising feeder.
        sources: sources of a MEP.
    """
    open_accounts = sum(not closes(node.status["accounting"]) for node in nodes)
    found = [
        Identity("MEPs without acknowledgement", int(fed["unacknowledged"]), 0),
        Identity("fragments refused for good", sum(each["fragments"] for each in fed["refused"].values()), 0),
        Identity("nodes whose accounting does not close", open_accounts, 0),
    ]
    if not any(node.killed for node in nodes):
        built = sum(node.status["accounting"]["fragments"]["built"] for node in nodes)
        complete = sum(node.status["accounting"]["meps"]["complete"] for node in nodes)
        found += [
            Identity("MEPs sent, MEPs complete in nodes", int(fed["meps"]), complete),
            Identity("fragments of these MEPs, fragments built", int(fed["meps"]) * sources, built),
            Identity("events sent, events processed", int(fed["events"]), _sum(nodes, "processed")),
        ]
        # Slices of a stream are kept by their windows, which join records of neighbours.
        if not any("slices" in node.status["accounting"] for node in nodes):
            written = records_in([path for node in nodes for path in node.files])
            found.append(Identity("events accepted, events in files", _sum(nodes, "accepted"), written))
    return found


def _sum(nodes: Sequence[NodeAccount], key: str) -> int:
    return sum(int(node.status["events"][key]) for node in nodes)


def result_of(fed: Mapping[str, Any], nodes: Sequence[NodeAccount], sources: int) -> dict[str, Any]:
    """The JSON object of a farm that has ended."""
    checked = identities(fed, sources, nodes)
    return {
        "fed": {
            key: fed[key]
            for key in ("meps", "events", "fragments", "resent", "reassigned", "unacknowledged", "seconds", "error")
        },
        "events_per_second": fed["events"] / fed["seconds"] if fed["seconds"] else 0.0,
        "sources": sources,
        "nodes": [
            {
                "name": node.name,
                "events": dict(node.status["events"]),
                "accounting": dict(node.status["accounting"]),
                "sessions_killed": node.killed,
                "tck": node.status["tck"],
                "backend": node.status["backend"],
                "files": [str(path) for path in node.files],
            }
            for node in nodes
        ],
        "identities": [
            {"name": each.name, "left": each.left, "right": each.right, "holds": each.holds} for each in checked
        ],
        "accounting_closes": all(each.holds for each in checked) and not fed["error"],
    }


def text_of(result: Mapping[str, Any]) -> str:
    """The result in lines of at most 80 columns."""
    fed = result["fed"]
    lines = [
        "",
        f"The feeder sent {fed['events']} events in {fed['meps']} MEPs of {result['sources']} sources, in "
        f"{fed['seconds']:.1f} s.",
        "",
        f"  rate        {result['events_per_second']:.0f} events/s",
        f"  sent again  {fed['resent']} fragments",
        f"  moved       {fed['reassigned']} MEPs, to another node",
    ]
    for node in result["nodes"]:
        killed = f", after {node['sessions_killed']} lost sessions" if node["sessions_killed"] else ""
        lines.append(
            f"  {node['name']:<11} {node['events']['processed']} events, {node['events']['accepted']} accepted{killed}"
        )
    lines.append("")
    if any(node["sessions_killed"] for node in result["nodes"]):
        lines += ["A lost session takes its counters with it, so sums over sessions are not compared.", ""]
    for each in result["identities"]:
        lines.append(
            f"  {'holds' if each['holds'] else 'BROKEN':<11} {each['name']}"
            + (f": {each['left']}" if each["holds"] else f": {each['left']} and {each['right']}")
        )
    lines += ["", "The accounting of the farm closes." if result["accounting_closes"] else "It DOES NOT CLOSE."]
    if fed["error"]:
        lines.append(f"error: {fed['error']}")
    return "\n".join(lines)
