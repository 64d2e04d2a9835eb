"""SciFi banks for tests: real banks, simulated banks, and banks with given words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import SCIFI_OF_LINKS
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.scifi_links import encode_scifi_links
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank

Word = tuple[int, int, int, int]
"""Link, cell, fraction, edge."""


def real_events(shared: Path) -> list[list[RawBank]]:
    """The seven minimum-bias events."""
    (path,) = (shared / "data" / "lhcb-minbias-mdf").glob("*retina3*.mdf")
    return [list(record.banks()) for record in iter_records(path.read_bytes())]


@cache
def simulated_events(n: int) -> list[list[RawBank]]:
    """Minimum-bias events of the built-in detector."""
    detector = Detector.builtin()
    return list(FullSimulation(detector, sample_source("minbias", 7.6, detector.velo.beamline)).events(n, seed=6))


def as_version(banks: Sequence[RawBank], version: int) -> list[RawBank]:
    """The same words in SciFi banks of another version."""
    return [
        RawBank(bank.type, version, bank.source_id, bank.payload) if bank.type == LhcbBankType.FT_CLUSTER else bank
        for bank in banks
    ]


def as_links(banks: Sequence[RawBank], version: int, geometry: SciFiGeometry) -> list[RawBank]:
    """The same hits in SciFi banks of version 7 or 8, behind all other banks."""
    assert geometry.sipms is not None
    _, hits = geometry.sipms.link_hits(decode_scifi(banks), geometry.numbering)
    others = [bank for bank in banks if bank.type != LhcbBankType.FT_CLUSTER]
    return others + encode_scifi_links(hits, geometry.sipms.source.tolist(), version)


def in_version(banks: Sequence[RawBank], version: int) -> list[RawBank]:
    """Simulated banks in another version: the same words up to version 6, the same hits in versions 7 and 8."""
    links = version in SCIFI_OF_LINKS
    return as_links(banks, version, SciFiGeometry.builtin()) if links else as_version(banks, version)


def payload_of(words: Sequence[Word]) -> memoryview:
    """Header, words, padding."""
    data = [0, 0, *(link << 9 | cell << 2 | fraction << 1 | edge for link, cell, fraction, edge in words)]
    return memoryview(np.array(data + [0] * (len(data) % 2), "<u2").tobytes())


def bank_of(words: Sequence[Word], number: int = 7, version: int = 5) -> RawBank:
    """A bank with these words, unchanged."""
    return RawBank(LhcbBankType.FT_CLUSTER, version, number, payload_of(words))
