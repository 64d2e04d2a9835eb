"""raw_source_offsets and raw_list_banks: every column is that of the oracle, and each odd event has its flag."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from tests.processing.raw.raw_events import Banks, mep_of, random_events, run_chain
from tests.processing.raw.raw_oracle import FLAGS, Settings, differences, expected_columns

NUMBER_IN_BANK = Settings(number_type=16, number_offset=3, number_bytes=5, min_banks=20, max_bank_bytes=40)
TIME_IN_BANK = Settings(
    time_type=16, time_offset=3, time_bytes=5, time_unit_ns=25, time_divisor=6, min_banks=20, max_bank_bytes=40
)


@pytest.mark.parametrize("align", [2, 3, 8])
@pytest.mark.parametrize("settings", [Settings(), NUMBER_IN_BANK, TIME_IN_BANK], ids=["default", "number", "time"])
def test_every_column_is_that_of_the_oracle(settings: Settings, align: int) -> None:
    meps = [
        mep_of(random_events(1, 7, 50), 0xFFFF_FFFE, align=align, versions=dict.fromkeys(range(0, 1 << 16, 3), 9)),
        mep_of([{}, {}], sources=()),
        mep_of(random_events(2, 5, 3), 1 << 40, align=align),
        mep_of([{}, {}, {}], 99, sources=(4, 0xFFFF)),
    ]
    found = run_chain(meps, settings.toml(), EventFlag.INCOMPLETE)
    expected = expected_columns(meps, settings, EventFlag.INCOMPLETE)
    assert differences(found.columns, expected) == []
    words = expected["events.flags"]
    settable = {"no_event_number": settings.number_type, "no_event_time": settings.time_type}
    for name, flag in FLAGS.items():
        if settable.get(name) != 255:
            assert 0 < np.count_nonzero(words & flag) < len(words), flag


def test_the_flags_of_the_oracle_are_those_of_the_chain() -> None:
    assert {flag.name: flag.mask for flag in CHAIN.flags} == FLAGS


def flags_of(event: Banks, settings: str = "", **of_mep: object) -> list[str]:
    """The names of the flags of one event among usual ones, whose flags must be none."""
    usual: Banks = {3: (192, b"a"), 4: (239, b"b" * 8)}
    mep = mep_of([usual, event, usual], sources=sorted({3, 4, *event}), **of_mep)  # type: ignore[arg-type]
    words = run_chain([mep], f"[sequence.raw_list_banks]\n{settings}").columns["events.flags"].tolist()
    assert [words[0], words[2]] == [0, 0]
    return CHAIN.flag_table.names(words[1])


@pytest.mark.parametrize(
    ("event", "settings", "flags"),
    [
        ({}, "", ["MISSING_BANKS"]),
        ({}, "min_banks = 0", []),
        ({3: (192, b"")}, "", []),
        ({3: (192, b"")}, "min_banks = 2", ["MISSING_BANKS"]),
        ({3: (192, b""), 4: (192, b"")}, "min_banks = 2", []),
        ({3: (191, b"")}, "", ["UNKNOWN_TYPE"]),
        ({3: (239, b"")}, "", []),
        ({3: (0, b"")}, "", ["UNKNOWN_TYPE"]),
        ({3: (242, b"")}, "", ["UNKNOWN_TYPE"]),
        ({3: (254, b"")}, "", ["UNKNOWN_TYPE"]),
        ({3: (254, b"")}, "first_known_type = 0\nlast_known_type = 254", []),
        ({3: (16, b"no ODIN")}, "", []),
        ({3: (240, b"x")}, "", ["BANK_ERROR"]),
        ({3: (241, b"x")}, "", ["BANK_ERROR"]),
        ({3: (192, bytes(32768))}, "", []),
        ({3: (192, bytes(32769))}, "", ["LARGE_BANK"]),
        ({3: (192, bytes(11))}, "max_bank_bytes = 10", ["LARGE_BANK"]),
        ({3: (192, bytes(10))}, "max_bank_bytes = 10", []),
        ({3: (192, bytes(65535))}, "", ["LARGE_BANK"]),
    ],
)
def test_an_odd_event_has_its_flag_and_its_neighbours_none(event: Banks, settings: str, flags: list[str]) -> None:
    assert flags_of(event, settings) == flags


def test_a_truncated_bank_is_listed_as_broken_and_flags_its_event_alone() -> None:
    events: list[Banks] = [{3: (192, b"12345678"), 4: (192, b"x")}, {3: (192, b"12345678"), 4: (192, b"x")}]
    mep = mep_of(events)
    data = mep.data.copy()
    # The size of the bank of source 3 in the last event of its MFP: two types, padded to four, precede the sizes.
    data[mep.fragments[0][1] + 24 + 2] = 9
    object.__setattr__(mep, "data", data)
    found = run_chain([mep], '[[lines]]\ntype = "ErrorBanks"\nname = "Errors"')
    assert found.columns["events.flags"].tolist() == [0, EventFlag.BANK_ERROR]
    assert found.columns["sources.bank"][:4][["source", "type", "size"]].tolist() == [
        *((3, 192, 8), (4, 192, 1)),
        *((3, 256, 0), (4, 192, 1)),
    ]
    assert found.columns["error_banks.count"].tolist() == [0, 1]
    assert found.accepted == [False, True]


@pytest.mark.parametrize(
    ("payload", "settings", "number"),
    [
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", "number_type = 200", 0x0807060504030201),
        (b"\x01\x02\x03\x04\x05\x06\x07", "number_type = 200", None),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08\x09", "number_type = 200\nnumber_offset = 1", 0x0908070605040302),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", "number_type = 200\nnumber_offset = 1", None),
        (b"\x01\x02\x03\x04\x05", "number_type = 200\nnumber_bytes = 4", 0x04030201),
        (b"\x01\x02\x03\x04\x05", "number_type = 200\nnumber_bytes = 5", 0x0504030201),
        (b"\x01\x02\x03\x04\x05", "number_type = 200\nnumber_bytes = 1\nnumber_offset = 4", 5),
        (b"\x01\x02\x03\x04\x05", "number_type = 200\nnumber_bytes = 1\nnumber_offset = 4294967295", None),
        (b"", "number_type = 200", None),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", "number_type = 201", None),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", "", None),
    ],
)
def test_the_number_of_an_event_is_in_the_configured_bank_or_in_the_headers(
    payload: bytes, settings: str, number: int | None
) -> None:
    events: list[Banks] = [{1: (192, b"")}, {9: (200, payload), 60000: (200, b"\xff" * 16)}]
    # With several banks of the type, that of the lowest source counts.
    found = run_chain([mep_of(events, 0xFFFF_FFFF)], f"[sequence.raw_list_banks]\n{settings}").columns
    low, high = found["events.number"][2:4].tolist()
    assert high << 32 | low == (0x1_0000_0000 if number is None else number)
    is_flagged = bool(found["events.flags"][1] & FLAGS["no_event_number"])
    assert is_flagged == (number is None and settings != "")


@pytest.mark.parametrize(
    ("payload", "settings", "time"),
    [
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", "time_type = 200", 0x0807060504030201),
        (b"\x01\x02\x03\x04\x05\x06\x07", "time_type = 200", None),
        (b"\x01\x02\x03\x04", "time_type = 200\ntime_bytes = 3\ntime_offset = 1", 0x040302),
        (b"\x01\x02\x03\x04", "time_type = 200\ntime_bytes = 3\ntime_offset = 2", None),
        (b"\x07", "time_type = 200\ntime_bytes = 1\ntime_unit_ns = 25\ntime_divisor = 6", 29),
        (b"\x05", "time_type = 200\ntime_bytes = 1\ntime_unit_ns = 25\ntime_divisor = 6", 20),
        # 25 times the largest times of 64 bits, and the first one beyond.
        (
            (((1 << 64) - 1) // 25).to_bytes(8, "little"),
            "time_type = 200\ntime_unit_ns = 25",
            ((1 << 64) - 1) // 25 * 25,
        ),
        ((((1 << 64) - 1) // 25 + 1).to_bytes(8, "little"), "time_type = 200\ntime_unit_ns = 25", None),
        # The product has more than 64 bits, the result has not.
        (b"\xff" * 8, "time_type = 200\ntime_unit_ns = 7\ntime_divisor = 8", ((1 << 64) - 1) * 7 // 8),
        # The whole units fit, the rest does not.
        (b"\xff" * 8, "time_type = 200\ntime_unit_ns = 4294967295\ntime_divisor = 4294967294", None),
        (b"\x01", "time_type = 200\ntime_bytes = 1\ntime_unit_ns = 0", 0),
        (b"", "time_type = 200", None),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", "time_type = 201", None),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", "", None),
    ],
)
def test_the_time_of_an_event_is_in_the_configured_bank_or_unknown(
    payload: bytes, settings: str, time: int | None
) -> None:
    events: list[Banks] = [{1: (192, b"")}, {9: (200, payload), 60000: (200, b"\xff" * 16)}]
    # With several banks of the type, that of the lowest source counts.
    found = run_chain([mep_of(events)], f"[sequence.raw_list_banks]\n{settings}").columns
    assert found["event_times.count"].tolist() == [0, 0 if time is None else 1]
    assert found["event_times.time_ns"].tolist() == [0, time or 0]
    is_flagged = bool(found["events.flags"][1] & FLAGS["no_event_time"])
    assert is_flagged == (time is None and settings != "")


def test_a_time_in_no_units_or_no_bytes_is_refused() -> None:
    for settings in ("time_divisor = 0", "time_bytes = 0", "time_bytes = 9"):
        with pytest.raises(TriggerConfigError, match=settings.split()[0]):
            run_chain([mep_of([{1: (192, b"")}])], f"[sequence.raw_list_banks]\n{settings}")


def test_the_key_of_a_configuration_without_times_has_none_of_their_constants() -> None:
    of_default = CHAIN.document(CHAIN.load_trigger(None)).text
    assert "number_type" in of_default
    assert "time_" not in of_default
    configured = TriggerConfig.from_toml("[sequence.raw_list_banks]\ntime_type = 16\n", CHAIN.menu)
    assert "time_type" in CHAIN.document(configured).text


def test_an_event_of_a_mep_without_any_source_is_kept_in_the_batch_and_flagged() -> None:
    empty, usual = mep_of([{}, {}], sources=()), mep_of([{5: (192, b"abc")}], 7)
    found = run_chain([empty, usual]).columns
    missing = FLAGS["missing_banks"]
    assert found["events.flags"].tolist() == [missing, missing, 0]
    assert found["events.number"].tolist() == [0, 0, 0, 0, 7, 0]
    assert found["sources.offset"].tolist() == [0, 0, 0, 1]


def test_sources_in_all_sub_detectors_are_listed_in_the_order_of_their_ids() -> None:
    sources = [0, 2047, 2048, *(number << 11 | 5 for number in range(2, 31)), 0xF800, 0xFFFF]
    found = run_chain([mep_of([dict.fromkeys(reversed(sources), (192, b""))])]).columns
    assert found["sources.bank"]["source"][: len(sources)].tolist() == sources
    assert found["sources.bank"]["subdetector"][: len(sources)].tolist() == [source >> 11 for source in sources]
