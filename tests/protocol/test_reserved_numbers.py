"""Owners of the numbers of bank types and sub-detectors agree in Python, C++ and on the page."""

from __future__ import annotations

import re
from pathlib import Path

from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import (
    LIST_TYPES,
    NO_BANK,
    RESERVED_TYPES,
    TYPES_OF_TRIGGER,
    USER_TYPES,
    BankType,
)
from hltnode.protocol.raw_data.reports import HLT1_SOURCE_ID
from hltnode.protocol.raw_data.source_id import (
    ODIN_SUBDETECTOR,
    TRIGGER_SUBDETECTOR,
    USER_SUBDETECTORS,
    subdetector_of,
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/formats/bank-types.md").read_text(encoding="utf-8")


def numbers_on_the_page(heading: str) -> set[int]:
    """Numbers in the columns "type" of the tables under a heading."""
    section = PAGE.split(f"{heading}\n", 1)[1]
    section = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in section.splitlines() if row.startswith("|")]
    found: set[int] = set()
    columns: list[int] = []
    for row in rows:
        if "type" in row:
            columns = [i for i, cell in enumerate(row) if cell == "type"]
        found |= {int(row[i]) for i in columns if i < len(row) and row[i].isdigit()}
    return found


def test_no_bank_type_has_two_owners() -> None:
    owners = [set(RESERVED_TYPES), set(map(int, LhcbBankType)), set(USER_TYPES)]
    assert sum(map(len, owners)) == len(set.union(*owners))
    assert all(0 <= number <= 255 for numbers in owners for number in numbers)


def test_no_subdetector_of_lhcb_or_the_trigger_is_free_for_users() -> None:
    assert subdetector_of(HLT1_SOURCE_ID) == TRIGGER_SUBDETECTOR
    assert SubDetector.ODIN == ODIN_SUBDETECTOR
    assert not {*map(int, SubDetector), TRIGGER_SUBDETECTOR} & set(USER_SUBDETECTORS)


def test_the_page_lists_every_reserved_type_and_every_type_of_lhcb() -> None:
    assert numbers_on_the_page("## Bank types") == RESERVED_TYPES - set(LIST_TYPES)
    assert f"| {LIST_TYPES[0]} to {LIST_TYPES[-1]} | [output lists]" in PAGE
    assert numbers_on_the_page("### Types of LHCb") == set(map(int, LhcbBankType))


def test_the_page_names_the_ranges_for_boards_of_users() -> None:
    assert f"| {USER_TYPES[0]} to {USER_TYPES[-1]} | boards of users |" in PAGE
    assert f"| {USER_SUBDETECTORS[0]} to {USER_SUBDETECTORS[-1]} | boards of users |" in PAGE


def test_compiled_code_has_the_same_numbers() -> None:
    text = (ROOT / "protocol/trigger_banks.h").read_text(encoding="utf-8")
    [members] = re.findall(r"enum BankType : uint8_t \{([^}]*)\}", text)
    numbers = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", members)}
    [(first, n)] = re.findall(r"first_list = (\d+), max_lists = (\d+);", text)
    assert range(int(first), int(first) + int(n)) == LIST_TYPES
    assert set(numbers.values()) - {numbers["odin_type"]} | set(LIST_TYPES) == TYPES_OF_TRIGGER
    assert numbers["odin_type"] == BankType.ODIN
    [no_bank] = re.findall(r"no_bank = (\d+);", (ROOT / "protocol/mfp.h").read_text(encoding="utf-8"))
    assert int(no_bank) == NO_BANK
    [tae_header] = re.findall(r"tae_header = (\d+);", (ROOT / "protocol/written_banks.h").read_text(encoding="utf-8"))
    assert int(tae_header) == BankType.TAE_HEADER
