"""The readout of a chain names bank types and sub-detectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import entry_points

import pytest

from hltnode.processing.framework.batch import BROKEN_BANK
from hltnode.processing.framework.collections import DeclarationError
from hltnode.processing.framework.readout import ENTRY_POINTS as READOUTS
from hltnode.processing.framework.readout import bank_type_name, subdetector_name
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.readout import LhcbReadout
from hltnode.processing.selection.trigger_chain import ENTRY_POINTS, installed_chain
from hltnode.protocol.raw_data.bank_types import RESERVED_TYPES, USER_TYPES
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS


def test_a_bank_type_has_the_name_of_the_node_or_of_the_chain_or_its_number() -> None:
    names = [bank_type_name(CHAIN.readout, bank_type) for bank_type in (16, 73, 200)]
    assert names == ["ODIN", "VP_RETINA_CLUSTER", "type 200"]


def test_a_subdetector_without_a_name_is_shown_by_its_number() -> None:
    assert [subdetector_name(CHAIN.readout, number) for number in (2, 24)] == ["VELO A", "detector 24"]


@pytest.mark.parametrize("reserved", sorted(RESERVED_TYPES))
def test_a_chain_that_names_a_type_of_the_node_is_refused(reserved: int) -> None:
    class Readout(LhcbReadout):
        bank_types: Mapping[int, str] = {63: "VP", reserved: "OWN"}

    with pytest.raises(DeclarationError, match=f"reserves the bank types {reserved}"):
        replace(CHAIN, readout=Readout())


@pytest.mark.parametrize("name", sorted(entry_points(group=ENTRY_POINTS).names))
def test_no_installed_chain_names_a_number_that_is_free_for_users(name: str) -> None:
    """The chain of any boards calls them by their numbers."""
    readout = installed_chain(name).readout
    assert {readout.bank_types.get(number, f"USER {number}") for number in USER_TYPES} == {
        f"USER {number}" for number in USER_TYPES
    }
    assert {readout.subdetectors.get(number, f"BOARDS {number}") for number in USER_SUBDETECTORS} == {
        f"BOARDS {number}" for number in USER_SUBDETECTORS
    }


def test_each_chain_of_this_package_offers_its_readout_alone() -> None:
    offered = {point.name: point.load() for point in entry_points(group=READOUTS)}
    assert offered == {
        name: installed_chain(name).readout for name in ("alice_tpc", "km3net", "lhcb", "mu3e", "na62_rich", "raw")
    }


def test_no_bank_has_the_type_that_kernels_give_a_broken_fragment() -> None:
    assert 255 < BROKEN_BANK <= 0xFFFF
