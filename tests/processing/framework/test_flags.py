"""Event flags: flags of the framework, flags of a chain, and the decoding of flag words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hltnode.processing.framework.collections import DeclarationError, SharedTypes
from hltnode.processing.framework.flags import CHAIN_BITS, ChainFlag, EventFlag, FlagKind, FlagTable
from hltnode.processing.lhcb.chain import CHAIN

ERROR = ChainFlag(name="hot_chip", bit=16, text="")
CUT = ChainFlag(name="too_full", bit=20, text="", kind=FlagKind.CUT)
NOTE = ChainFlag(name="no_beam", bit=31, text="", kind=FlagKind.NOTE)


def test_the_framework_uses_no_bit_of_chains() -> None:
    assert not {int(flag).bit_length() - 1 for flag in EventFlag} & set(CHAIN_BITS)


def test_an_error_goes_to_the_error_stream_and_cuts_and_notes_do_not() -> None:
    table = FlagTable([ERROR, CUT, NOTE])
    assert not table.errors & EventFlag.DROPPED
    for mask in (ERROR.mask, EventFlag.BANK_ERROR, EventFlag.NOT_PROCESSED, 1 << 25):
        assert table.errors & mask
    for mask in (CUT.mask, NOTE.mask, EventFlag.INCOMPLETE, EventFlag.CANDIDATES_LEFT_OUT, EventFlag.LIST_LEFT_OUT):
        assert not table.errors & mask
    assert not table.errors & EventFlag.PREFILTERED
    assert table.cuts == CUT.mask


def test_a_word_is_read_as_the_names_of_its_bits_lowest_first() -> None:
    word = NOTE.mask | ERROR.mask | EventFlag.INCOMPLETE
    assert FlagTable([NOTE, ERROR]).names(word) == ["INCOMPLETE", "HOT_CHIP", "NO_BEAM"]
    assert FlagTable().names(word) == ["INCOMPLETE", "BIT_16", "BIT_31"]
    assert FlagTable().names(0) == []


@pytest.mark.parametrize(("name", "bit"), [("own", 0), ("own", 9), ("own", 10), ("own", 32), ("Own", 16), ("a b", 16)])
def test_a_flag_with_a_bit_or_name_that_is_not_the_chains_is_refused(name: str, bit: int) -> None:
    with pytest.raises(ValueError, match=f"flag {name}"):
        ChainFlag(name=name, bit=bit, text="")


def test_a_flag_with_a_name_of_the_framework_is_refused() -> None:
    with pytest.raises(ValueError, match="flag overflow"):
        ChainFlag(name="overflow", bit=16, text="")


@pytest.mark.parametrize("twice", [replace(ERROR, bit=17), replace(ERROR, name="other")])
def test_a_chain_whose_flags_share_a_bit_or_a_name_is_refused(twice: ChainFlag) -> None:
    types = SharedTypes(__file__, "test_flags", flags=(ERROR, twice))
    with pytest.raises(DeclarationError, match="two flags have the same"):
        replace(CHAIN, types=(*CHAIN.types, types))


def test_flags_of_lhcb_keep_their_bits_and_labels() -> None:
    assert {flag.name: flag.mask for flag in CHAIN.flags} == {
        "global_event_cut": 32,
        "too_many_clusters": 128,
        "missing_detector": 256,
        "lumi_saturated": 65536,
        "many_jets": 1 << 24,
    }
    table = CHAIN.flag_table
    assert list(table.masks.values()) == [1 << bit for bit in (*range(13), 16, 24)]
    assert table.cuts == 32
    assert table.errors == 0xFFFF_FFFF & ~(4 | 32 | 512 | 1024 | 2048 | 4096 | 65536 | 1 << 24)
