"""Made-up events: any number of boards, and the same bytes whatever the number of processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.raw.offline.simulation import (
    EVENTS_PER_BLOCK,
    MAX_BOARDS,
    NUMBER_TYPE,
    RawOptions,
    RawSample,
    Sizes,
    board_source,
    drawn_sizes,
    encode_block,
)
from hltnode.processing.raw.readout import RawBankType
from hltnode.protocol.raw_data.bank_types import USER_TYPES
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS, subdetector_of


def sample(seed: int = 1, **options: object) -> RawSample:
    return RawSample(SampleRequest(seed=seed, run=12), RawOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sizes", "spread"),
    [
        (Sizes.FIXED, lambda mean: 0.0),
        (Sizes.UNIFORM, lambda mean: mean / np.sqrt(3)),
        (Sizes.EXPONENTIAL, lambda mean: mean),
        (Sizes.LOGNORMAL, lambda mean: mean * np.sqrt(np.e - 1)),
    ],
)
def test_every_distribution_has_the_mean_and_its_own_spread(sizes: Sizes, spread: Callable[[float], float]) -> None:
    drawn = drawn_sizes(np.random.default_rng(3), RawOptions(boards=14_000, mean_bytes=1000, sizes=sizes))
    assert abs(drawn.mean() - 1000) < 60
    assert drawn.std() == pytest.approx(spread(1000.0), rel=0.15, abs=1e-9)


def test_boards_have_types_in_turn_and_some_are_absent_or_in_error() -> None:
    [banks] = sample(boards=5000, types=3, empty=0.5, errors=0.1).events(1)
    assert 2300 < len(banks) < 2700
    errors = [bank for bank in banks if bank.type == RawBankType.BOARD_ERROR]
    assert 150 < len(errors) < 350
    boards = {board_source(board): board for board in range(5000)}
    assert {subdetector_of(source) for source in boards} == {24, 25, 26}
    others = [bank for bank in banks if bank not in errors]
    assert all(bank.type == USER_TYPES[boards[bank.source_id] % 3] for bank in others)
    assert len({bank.source_id for bank in banks}) == len(banks)


def test_the_last_board_has_the_last_id_of_the_boards_of_users() -> None:
    assert board_source(MAX_BOARDS - 1) == USER_SUBDETECTORS[-1] << 11 | 2047


def test_events_have_the_same_bytes_in_any_block_and_order() -> None:
    own = sample(boards=3, numbered=True)
    whole = encode_block(own, 0, 10)
    assert encode_block(own, 0, 4) + encode_block(own, 4, 6) == whole
    assert encode_block(sample(seed=2, boards=3, numbered=True), 0, 10) != whole
    blocks = list(own.blocks(EVENTS_PER_BLOCK + 1, jobs=1))
    assert [n for n, _ in blocks] == [EVENTS_PER_BLOCK, 1]
    assert b"".join(data for _, data in blocks).startswith(whole)


def test_the_command_writes_numbered_events(tmp_path: Path) -> None:
    file = tmp_path / "boards.mdf"
    options = ["--boards", "4", "--mean-bytes", "50", "--numbered", "--seed", "5", "--run", "9", "--jobs", "1"]
    done = CliRunner().invoke(app, ["simulate", "--chain", "raw", "-n", "6", "-o", str(file), *options])
    assert done.exit_code == 0, done.output
    events = [record.banks() for record in iter_records(file.read_bytes())]
    assert [len(banks) for banks in events] == [5] * 6
    numbers = [bank for banks in events for bank in banks if bank.type == NUMBER_TYPE]
    assert [int.from_bytes(bank.payload, "little") for bank in numbers] == list(range(6))


def test_a_mep_file_is_refused_because_it_begins_with_odin(tmp_path: Path) -> None:
    options = ["simulate", "--chain", "raw", "-n", "2", "-o", str(tmp_path / "x.mep"), "--jobs", "1"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code != 0
    assert "MEP files begin with ODIN, which this chain does not have" in " ".join(done.output.split())


def test_processing_follows_the_numbers_of_the_events(tmp_path: Path) -> None:
    file, trigger, result = tmp_path / "boards.mdf", tmp_path / "t.toml", tmp_path / "r.json"
    file.write_bytes(encode_block(sample(boards=6, empty=0.3, errors=0.05), 0, 80))
    trigger.write_text('[[lines]]\ntype = "ErrorBanks"\nname = "Errors"\n')
    command = ["process", str(file), "--chain", "raw", "--trigger", str(trigger), "--json", str(result)]
    done = CliRunner().invoke(app, [*command, "--backend", "cpu", "--threads", "1"])
    assert done.exit_code == 0, done.output
    events = [record.banks() for record in iter_records(file.read_bytes())]
    errors = [sum(bank.type == RawBankType.BOARD_ERROR for bank in banks) for banks in events]
    found = json.loads(result.read_text())["per_event"]
    assert [event["banks"] for event in found] == [len(banks) for banks in events]
    assert [event["error_banks"] for event in found] == errors
    assert [event["lines"] for event in found] == [["Errors"] if n else [] for n in errors]
    assert 0 < sum(n > 0 for n in errors) < 80
