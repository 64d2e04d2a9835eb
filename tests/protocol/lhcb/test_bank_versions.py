"""Decoders, kernels and the simulation take bank versions from one table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import (
    DETECTORS,
    ECAL_VERSIONS,
    SCIFI,
    SCIFI_OF_LINKS,
    UT,
    VELO,
    MuonVersion,
)
from hltnode.protocol.lhcb.banks.ecal import decode_ecal_boards, decode_ecal_cards
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.lhcb.banks.muon_links import decode_muon_links
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.scifi_links import decode_scifi_links
from hltnode.protocol.lhcb.banks.ut import decode_ut
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels
from hltnode.protocol.raw_data.raw_bank import RawBank

KERNELS = Path(__file__).resolve().parents[3] / "processing" / "lhcb"

Decoder = Callable[[list[RawBank]], object]

DECODERS: list[tuple[LhcbBankType, tuple[int, ...], Decoder]] = [
    (LhcbBankType.VP, VELO.read_versions, decode_superpixels),
    (LhcbBankType.VP_RETINA_CLUSTER, VELO.read_versions, decode_retina_clusters),
    (LhcbBankType.UT, UT.read_versions, decode_ut),
    (LhcbBankType.FT_CLUSTER, tuple(v for v in SCIFI.read_versions if v not in SCIFI_OF_LINKS), decode_scifi),
    (LhcbBankType.FT_CLUSTER, SCIFI_OF_LINKS, decode_scifi_links),
    (LhcbBankType.ECAL_PACKED, ECAL_VERSIONS[LhcbBankType.ECAL_PACKED], decode_ecal_cards),
    (LhcbBankType.CALO, ECAL_VERSIONS[LhcbBankType.CALO], decode_ecal_boards),
    (LhcbBankType.MUON, (MuonVersion.BATCHES,), decode_muon),
    (LhcbBankType.MUON, (MuonVersion.LINKS,), lambda banks: decode_muon_links(banks, [24] * 44)),
]


def refused_for_its_version(decode: Decoder, bank_type: LhcbBankType, version: int) -> bool:
    """Whether the decoder refuses an empty bank because of its version, not of its content."""
    try:
        decode([RawBank(bank_type, version, 0, memoryview(bytes(8)))])
    except BankError as error:
        return error.reason is RejectReason.BAD_VERSION
    return False


@pytest.mark.parametrize(("bank_type", "versions", "decode"), DECODERS)
def test_decoders_read_the_versions_of_the_table_and_no_others(
    bank_type: LhcbBankType, versions: tuple[int, ...], decode: Decoder
) -> None:
    accepted = [version for version in range(256) if not refused_for_its_version(decode, bank_type, version)]
    assert accepted == list(versions)


def test_the_versions_of_a_detector_follow_one_another() -> None:
    """Kernels compare with the first and the last version."""
    for detector in DETECTORS:
        first, *_, last = detector.read_versions
        assert detector.read_versions == tuple(range(first, last + 1))


def test_versions_that_are_written_are_read() -> None:
    for detector in DETECTORS:
        for versions in detector.written.values():
            assert {int(version) for version in versions} <= set(detector.read_versions)


def test_each_bank_type_belongs_to_one_detector() -> None:
    types = [*(bank_type for detector in DETECTORS for bank_type in detector.written), *ECAL_VERSIONS]
    sides = [side for detector in DETECTORS for side in detector.sides]
    assert len(types) == len(set(types)) == len({bank_type for bank_type, _, _ in DECODERS})
    assert len(sides) == len(set(sides))


VERSION_AS_NUMBER = re.compile(r"\bversion\b *(?:[=!]=|[<>]=?) *\d")


def test_kernels_name_the_versions() -> None:
    found = [
        f"{path.relative_to(KERNELS)}: {line.strip()}"
        for path in sorted([*KERNELS.rglob("*.cuh"), *KERNELS.rglob("*.h")])
        if path.name != "decode_odin.cuh"  # a bank without detector
        for line in path.read_text().splitlines()
        if VERSION_AS_NUMBER.search(line)
    ]
    assert found == []


def test_versions_as_numbers_are_found() -> None:
    assert VERSION_AS_NUMBER.search("if (bank.version == 4u) {")
    assert VERSION_AS_NUMBER.search("row.version < 2u || row.version > 4u")
