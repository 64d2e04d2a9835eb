"""Requests of the event loop and the compute thread to the output; they keep their order among the batches."""

from dataclasses import dataclass
from typing import Any

from hltnode.daemon.storage.journal_content import Ranges
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.protocol.transport.feeder_messages import Revoked


@dataclass(frozen=True, slots=True)
class FinishFiles:
    """Request to give the files of a run their final names and to write its summary.

    With `run_ended`, all files of the run are finished and its MEPs are removed from the journal. Otherwise the run may
    continue in the next session, and files with MEPs that a feeder may revoke keep their .part names.
    """

    summary: dict[str, Any]
    run_ended: bool


@dataclass(frozen=True, slots=True)
class Supervised:
    """A feeder may revoke MEPs of the run: its files keep their .part names until their MEPs are confirmed.

    Submitted before the first batch of the run.
    """

    run: int


@dataclass(frozen=True, slots=True)
class InputKnown:
    """The feeders of the run name their input. Submitted before the first batch of the run."""

    run: int
    name: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Every feeder has confirmed all MEPs of the run below this id: none of them can be revoked."""

    run: int
    below: int


@dataclass(frozen=True, slots=True)
class RevokeEvents:
    """Request to remove the events of MEPs that another node builds now.

    meps: inclusive ranges. in_node: MEPs that are built here but not acknowledged; they may not be written yet.
    """

    run: int
    meps: Ranges
    in_node: frozenset[int]
    receipt: tuple[bytes, Revoked]


@dataclass(frozen=True, slots=True)
class KeepTck:
    """Request to write a trigger configuration beside the events that it accepts. Submitted before their batches."""

    document: TckDocument


Request = KeepTck | FinishFiles | Supervised | InputKnown | Confirmed | RevokeEvents
