"""Each line of the chain, and each of its bounds, decides alone on some event; scalers and histograms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.lines.scalers import mix_words, scaler_limit, scaler_seed
from tests.processing.raw.raw_events import Banks, mep_of, run_chain

LINES = """
[sequence.raw_list_banks]
max_bank_bytes = 7000

[[lines]]
type = "EventBytes"
name = "Bytes"
min_bytes = 100
max_bytes = 200

[[lines]]
type = "BankCount"
name = "Banks"
min_banks = 6
max_banks = 7

[[lines]]
type = "BankCount"
name = "Type"
bank_type = 200
min_banks = 2
max_banks = 3

[[lines]]
type = "BankSize"
name = "SizeOfType"
bank_type = 201
min_size = 10
max_size = 20

[[lines]]
type = "BankSize"
name = "Size"
min_size = 5000
max_size = 6000

[[lines]]
type = "SourceSize"
name = "SizeOfSource"
source = 50000
min_size = 10
max_size = 20

[[lines]]
type = "TypeAbsent"
name = "NoType"
bank_type = 210

[[lines]]
type = "SourceAbsent"
name = "NoSource"
source = 51000

[[lines]]
type = "ErrorBanks"
name = "Errors"
min_banks = 2

[[lines]]
type = "OddBanks"
name = "Odd"

[[lines]]
type = "Passthrough"
name = "Nothing"
prescale = 0.0
"""
USUAL: Banks = {51000: (210, b"")}
"""An event that no line selects."""


def with_banks(*banks: tuple[int, int, int], usual: Banks = USUAL) -> Banks:
    """The usual event with further banks: source, type and size of each."""
    return {**usual, **{source: (kind, bytes(size)) for source, kind, size in banks}}


def empty_banks(n: int, kind: int = 192) -> list[tuple[int, int, int]]:
    """Empty banks of n sources."""
    return [(source, kind, 0) for source in range(n)]


CASES = [
    ("an event that no line selects", USUAL, set()),
    ("fewest bytes", with_banks((1, 192, 60), (2, 192, 40)), {"Bytes"}),
    ("too few bytes", with_banks((1, 192, 60), (2, 192, 39)), set()),
    ("most bytes", with_banks((1, 192, 160), (2, 192, 40)), {"Bytes"}),
    ("too many bytes", with_banks((1, 192, 160), (2, 192, 41)), set()),
    ("fewest banks", with_banks(*empty_banks(5)), {"Banks"}),
    ("too few banks", with_banks(*empty_banks(4)), set()),
    ("most banks", with_banks(*empty_banks(6)), {"Banks"}),
    ("too many banks", with_banks(*empty_banks(7)), set()),
    ("fewest banks of a type", with_banks(*empty_banks(2, 200)), {"Type"}),
    ("too few banks of a type", with_banks(*empty_banks(1, 200)), set()),
    ("most banks of a type", with_banks(*empty_banks(3, 200)), {"Type"}),
    ("too many banks of a type", with_banks(*empty_banks(4, 200)), set()),
    ("banks of another type", with_banks(*empty_banks(2, 199)), set()),
    ("least size of a type", with_banks((1, 201, 10)), {"SizeOfType"}),
    ("too small for a type", with_banks((1, 201, 9)), set()),
    ("largest size of a type", with_banks((1, 201, 20)), {"SizeOfType"}),
    ("too large for a type", with_banks((1, 201, 21)), set()),
    ("the size in another type", with_banks((1, 202, 15)), set()),
    ("one of two banks has the size", with_banks((1, 201, 30), (2, 201, 15)), {"SizeOfType"}),
    ("least size", with_banks((1, 193, 5000)), {"Size"}),
    ("too small", with_banks((1, 193, 4999)), set()),
    ("largest size", with_banks((1, 194, 6000)), {"Size"}),
    ("too large", with_banks((1, 194, 6001)), set()),
    ("least size of a source", with_banks((50000, 193, 10)), {"SizeOfSource"}),
    ("too small for a source", with_banks((50000, 193, 9)), set()),
    ("largest size of a source", with_banks((50000, 193, 20)), {"SizeOfSource"}),
    ("too large for a source", with_banks((50000, 193, 21)), set()),
    ("the size in another source", with_banks((50001, 193, 15)), set()),
    ("a type is absent", with_banks((51000, 211, 0)), {"NoType"}),
    ("a source is absent", with_banks((1, 210, 0), usual={}), {"NoSource"}),
    ("two error banks", with_banks((1, 241, 0), (2, 240, 0)), {"Errors"}),
    ("one error bank", with_banks((1, 241, 0)), set()),
    ("an unknown type", with_banks((1, 240 + 8, 0)), {"Odd"}),
    ("a large bank", with_banks((1, 192, 7001)), {"Odd"}),
    ("nearly a large bank", with_banks((1, 192, 7000)), set()),
    ("no bank at all", {}, {"NoType", "NoSource"}),
]


def test_each_line_and_each_bound_decides_alone() -> None:
    meps = [mep_of([event], i, sources=sorted(event)) for i, (_, event, _) in enumerate(CASES)]
    found = run_chain(meps, LINES)
    wrong = {name: lines for (name, _, expected), lines in zip(CASES, found.lines, strict=True) if lines != expected}
    assert wrong == {}
    assert found.accepted == [bool(expected) for _, _, expected in CASES]


def test_every_type_of_line_is_tested() -> None:
    trigger = TriggerConfig.from_toml(LINES, CHAIN.menu)
    assert {type(line) for line in trigger.types} == set(CHAIN.menu.types)


@pytest.mark.parametrize("first_event", [0, (1 << 32) - 100])
def test_a_prescale_passes_the_events_whose_numbers_have_a_small_hash(first_event: int) -> None:
    n = 2000
    configuration = '[[lines]]\ntype = "Passthrough"\nname = "Sample"\nprescale = 0.25\n'
    found = run_chain([mep_of([USUAL] * n, first_event)], configuration)
    numbers = first_event + np.arange(n, dtype=np.uint64)
    words = [(numbers & np.uint64(0xFFFF_FFFF)).astype(np.uint32), (numbers >> np.uint64(32)).astype(np.uint32)]
    limit = scaler_limit(0.25)
    assert limit is not None
    passes = mix_words(scaler_seed("Sample_pre"), words) < limit
    assert found.accepted == passes.tolist()
    assert 400 < sum(found.accepted) < 600


def test_the_sample_follows_the_number_in_the_bank_not_the_place_in_the_file() -> None:
    events: list[Banks] = [{5: (200, i.to_bytes(8, "little"))} for i in range(400)]
    configuration = '[[lines]]\ntype = "Passthrough"\nname = "Sample"\nprescale = 0.3\n'
    configuration += "[sequence.raw_list_banks]\nnumber_type = 200\n"
    whole = run_chain([mep_of(events)], configuration).accepted
    kept = [event for event, accepted in zip(events, whole, strict=True) if accepted]
    assert 60 < len(kept) < 180
    assert all(run_chain([mep_of(kept, 12345)], configuration).accepted)


def test_a_line_on_sizes_fills_a_histogram_even_if_it_accepts_nothing() -> None:
    configuration = "".join(
        f'[[lines]]\ntype = "{kind}"\nname = "{name}"\n{what}\nhistogram_end = 640\npostscale = 0.0\n'
        for kind, name, what in (
            ("BankSize", "Any", ""),
            ("BankSize", "Type", "bank_type = 200"),
            ("SourceSize", "Source", "source = 8"),
        )
    )
    events = [with_banks((7, 200, 10 * i), (8, 201, 20 * i), (9, 200, 5)) for i in range(40)]
    found = run_chain([mep_of(events)], configuration)
    assert not any(found.accepted)
    sizes = {
        "Any_size": [len(payload) for event in events for _, payload in event.values()],
        "Type_size": [len(payload) for event in events for kind, payload in event.values() if kind == 200],
        "Source_size": [len(event[8][1]) for event in events],
    }
    for name, of_line in sizes.items():
        content = found.histograms[name]
        inside = [size for size in of_line if size < 640]
        assert content.bins.tolist() == np.histogram(inside, content.shape.edges)[0].tolist(), name
        assert content.overflow == sum(size >= 640 for size in of_line), name


def test_the_histograms_of_the_chain_hold_sizes_types_and_sub_detectors() -> None:
    # Those of banks see a tenth of the events; the same tenth for all, which the number of the event selects.
    events = [with_banks((2048, 200, 1), (4096, 201, 1024), (4097, 201, 0)) for _ in range(300)]
    mep = mep_of([*events, {}])
    found = run_chain([mep]).histograms
    seen = int(found["bank_types"].bins[210])
    assert 10 < seen < 60
    assert {i: int(n) for i, n in enumerate(found["bank_types"].bins) if n} == {200: seen, 201: 2 * seen, 210: seen}
    assert {i: int(n) for i, n in enumerate(found["bank_subdetectors"].bins) if n} == {
        1: seen,
        2: 2 * seen,
        24: seen,
    }
    quarters = {0: 3 * seen, 40: seen}
    assert {i: int(n) for i, n in enumerate(found["bank_size_log2"].bins) if n} == quarters
    assert {i: int(n) for i, n in enumerate(found["event_bytes_log2"].bins) if n} == {0: 1, 40: 300}
    assert {i: int(n) for i, n in enumerate(found["event_banks"].bins) if n} == {0: 1, 2: 300}


def test_a_file_of_lines_selects_and_counts_by_any_expression(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from hltnode.processing.raw.lines import *\n"
        "larger = count_of(banks, lambda bank: bank.size > 10)\n"
        'lines = [Line("TwoLarger", event, lambda e: larger >= 2),\n'
        '         Line("EmptySource", sources, lambda source: (source.id == 8) & (source.bytes == 0))]\n'
        "of_type = dict(of=banks, where=lambda bank: bank.type == 200)\n"
        'histograms = [Histogram("size_of_200", lambda bank: bank.size, 10, 0, 100, **of_type)]\n'
    )
    configuration = f'lines = []\nline_files = ["{tmp_path}/mine.py"]\n'
    events = [
        with_banks((7, 200, 11), (8, 192, 11)),
        with_banks((7, 200, 11), (8, 192, 10)),
        with_banks((7, 200, 55)),
    ]
    found = run_chain([mep_of(events)], configuration)
    assert found.lines == [{"TwoLarger"}, set(), {"EmptySource"}]
    assert found.histograms["size_of_200"].bins.tolist() == [0, 2, 0, 0, 0, 1, 0, 0, 0, 0]


def test_a_line_without_its_bank_is_refused_and_named() -> None:
    with pytest.raises(TriggerConfigError, match=r"lines\[0\].source: Field required"):
        TriggerConfig.from_toml('[[lines]]\ntype = "SourceSize"\nname = "A"', CHAIN.menu)
    with pytest.raises(TriggerConfigError, match=r"lines\[0\].bank_type: Input should be less than 255"):
        TriggerConfig.from_toml('[[lines]]\ntype = "TypeAbsent"\nname = "A"\nbank_type = 255', CHAIN.menu)


def test_the_command_lists_fields_of_events_banks_and_sources() -> None:
    listed = CliRunner().invoke(app, ["lines", "--fields", "--chain", "raw"])
    assert listed.exit_code == 0, listed.output
    for name in ("event.bytes", "banks.size", "banks.type", "sources.bytes", "sources.has_bank"):
        assert name.partition(".")[2] in listed.output
