"""Formats of event files are told apart by the whole header."""

import gzip
import struct

import pytest

from hltnode.protocol.raw_data.file_format import FileFormat, format_of
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

RECORD = encode_record(encode_banks([RawBank(66, 1, 1, memoryview(b"abcdef"))]), run=1)
ODIN = encode_mfp(source_id=0, event_id=0, version=7, types=[16], fragments=[bytes(40)])


def test_the_formats_are_recognised() -> None:
    assert format_of(RECORD[:20]) is FileFormat.MDF
    assert format_of(RECORD[:18] + b"\x02\x00") is FileFormat.MEP_2019
    assert format_of(encode_mep([ODIN])) is FileFormat.MEP
    assert format_of(gzip.compress(RECORD)) is FileFormat.GZIP
    assert format_of(RECORD[:19]) is None
    assert format_of(bytes(100)) is None


@pytest.mark.parametrize("size", [0xCEFA, 0x8B1F, 0x088B1F])
def test_an_mdf_record_whose_size_is_the_magic_of_another_format_is_mdf(size: int) -> None:
    assert format_of(struct.pack("<3I", size, size, size) + RECORD[12:20]) is FileFormat.MDF


def test_an_mdf_record_with_damaged_sizes_is_still_mdf() -> None:
    assert format_of(b"\x01" + RECORD[1:20]) is FileFormat.MDF
