"""Checks that the truth of an event matches the event. Other events are named, counted and left out of all numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.vertices import MIN_TRACKS
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.lhcb_id import FT_TYPE, UT_TYPE, VP_TYPE, detector_type, in_2022_scheme, without_orientation
from hltnode.protocol.lhcb.truth import McVertex, decode_vertices
from hltnode.protocol.lhcb.truth_columns import McParticleColumns, decode_particle_columns
from hltnode.protocol.lhcb.truth_ecal import decode_ecal_truth
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

# Of the LHCbIDs of an event's particles, this fraction must be hits of the event. Super-pixels cluster a little
# differently from the retina clusters that truth may have been made for; the truth of another event has almost none.
MIN_HITS_FOUND = 0.9
# No particle and no collision is farther from the origin (mm): the cavern is smaller.
_FARTHEST = 1e5
# Numbers have single precision; velopix files have three decimals (an azimuth of 3.142).
_ROUNDING = 1 + 1e-3
_DETECTORS = {VP_TYPE: "VELO", UT_TYPE: "UT", FT_TYPE: "SciFi"}


class TruthFault(StrEnum):
    """Why the truth of an event is not used."""

    MISSING = "no bank of particles"
    UNREADABLE = "bank cannot be read"
    IMPOSSIBLE_VALUES = "impossible values"
    DUPLICATE_KEYS = "two particles have one key"
    WRONG_NUMBER_OF_PVS = "number of primary vertices differs from that of the vertex bank"
    IDS_WITHOUT_HITS = "ids of its particles are not hits of the event"


@dataclass(frozen=True, slots=True)
class EventTruth:
    """Particles of an event, its collisions, and its showers in the calorimeter (SHOWER rows); None for those where the
    sample has no such bank."""

    particles: McParticleColumns
    vertices: list[McVertex] | None
    showers: NDArray[np.void] | None = None


def event_name(banks: Sequence[RawBank]) -> str:
    """Run and event number from the ODIN bank, if it is readable."""
    for bank in banks:
        if bank.type == BankType.ODIN:
            try:
                odin = decode_odin(bank)
            except ProtocolError:
                break
            return f"run {odin.run} event {odin.event_id}"
    return "event without readable ODIN"


def read_truth(
    banks: Sequence[RawBank], hits: Mapping[int, NDArray[np.uint32]], faults: TruthFaults
) -> EventTruth | None:
    """The truth of an event, or None, counted in `faults`, if it does not match the event.

    hits: LHCbIDs of all hits of the event, by detector type (VP_TYPE, UT_TYPE, FT_TYPE), for the detectors to check.
    """
    if not any(bank.type == LhcbBankType.MC_TRACKS for bank in banks):
        faults.add(TruthFault.MISSING, event_name(banks), "type 32")
        return None
    try:
        particles = decode_particle_columns(banks)
        vertices = next((decode_vertices(bank) for bank in banks if bank.type == LhcbBankType.MC_VERTICES), None)
        showers = next((decode_ecal_truth(bank) for bank in banks if bank.type == LhcbBankType.MC_ECAL), None)
    except ProtocolError as error:
        faults.add(TruthFault.UNREADABLE, event_name(banks), str(error))
        return None
    if found := _contradiction(particles, vertices):
        faults.add(found[0], event_name(banks), found[1])
        return None
    counts = [_lost_ids(particles, number, of_detector) for number, of_detector in hits.items()]
    for number, (n_ids, n_lost) in zip(hits, counts, strict=True):
        if n_ids - n_lost < MIN_HITS_FOUND * n_ids:
            faults.add(TruthFault.IDS_WITHOUT_HITS, event_name(banks), f"{n_lost} of {n_ids} {_DETECTORS[number]} ids")
            return None
    faults.ids += sum(n_ids for n_ids, _ in counts)
    faults.lost_ids += sum(n_lost for _, n_lost in counts)
    return EventTruth(particles, vertices, showers)


def _lost_ids(particles: McParticleColumns, number: int, hits: NDArray[np.uint32]) -> tuple[int, int]:
    """Number of the particles' ids in a detector, and of those that are not hits."""
    ids = {VP_TYPE: particles.velo_ids, UT_TYPE: particles.ut_ids, FT_TYPE: particles.scifi_ids}[number]
    if number == UT_TYPE:
        # UT channels of the old scheme are numbered otherwise: they cannot be compared.
        ids = ids[detector_type(ids) == UT_TYPE]
    known = np.isin(without_orientation(in_2022_scheme(ids)), without_orientation(hits))
    return len(known), int((~known).sum())


def _contradiction(particles: McParticleColumns, vertices: list[McVertex] | None) -> tuple[TruthFault, str] | None:
    values = particles.values
    if found := _impossible(values, vertices or ()):
        return TruthFault.IMPOSSIBLE_VALUES, found
    if repeats := len(values) - len(np.unique(values["key"])):
        return TruthFault.DUPLICATE_KEYS, f"{repeats} of {len(values)} particles"
    if vertices is not None:
        n_pvs = sum(vertex.n_tracks >= MIN_TRACKS for vertex in vertices)
        # Particles have 0 if their writer did not count vertices.
        wrong = values["n_pvs"][(values["n_pvs"] != n_pvs) & (values["n_pvs"] != 0)]
        if len(wrong):
            return TruthFault.WRONG_NUMBER_OF_PVS, f"{wrong[0]} instead of {n_pvs}"
    return None


def _impossible(values: NDArray[Any], vertices: Sequence[McVertex]) -> str | None:
    """The error of the first impossible particle or collision; comparisons with nan are false."""
    # Signalling nans, which damaged bytes may hold, must not warn.
    with np.errstate(invalid="ignore"):
        good = (values["p"] > 0) & np.isfinite(values["p"])
        good &= (values["pt"] >= 0) & (values["pt"] <= values["p"] * _ROUNDING)
        # Infinite for a particle exactly along the beam.
        good &= ~np.isnan(values["eta"]) & (np.abs(values["phi"]) <= np.pi * _ROUNDING)
        for axis in "xyz":
            good &= np.abs(values[f"vertex_{axis}"]) < _FARTHEST
    if not good.all():
        wrong = values[int(np.argmin(good))]
        names = ("key", "p", "pt", "eta", "phi", "vertex_x", "vertex_y", "vertex_z")
        return "particle of " + ", ".join(f"{name} {wrong[name]:g}" for name in names)
    for vertex in vertices:
        if vertex.n_tracks < 0 or not all(abs(place) < _FARTHEST for place in (vertex.x, vertex.y, vertex.z)):
            return f"vertex of {vertex.n_tracks} tracks at ({vertex.x:g}, {vertex.y:g}, {vertex.z:g}) mm"
    return None
