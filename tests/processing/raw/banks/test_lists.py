"""The list of sources: the banks of random events, in Python, on threads, in JSON results, arrays and tuples."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.workspace import BatchOutput
from hltnode.processing.raw.chain import CHAIN
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.processing.raw.raw_events import mep_of, random_events

N_EVENTS, N_SOURCES = 40, 60
EVENTS = random_events(11, N_EVENTS, N_SOURCES)
SOURCES = sorted({source for event in EVENTS for source in event})


def expected() -> list[list[tuple[int, int, int]]]:
    """(source, type, bytes) of every source of the MEP in each event."""
    absent = (NO_BANK, b"")
    return [[(source, *_of(event.get(source, absent))) for source in SOURCES] for event in EVENTS]


def _of(bank: tuple[int, bytes]) -> tuple[int, int]:
    return bank[0], len(bank[1])


def run(threads: int, *, with_lists: bool = True) -> BatchOutput:
    mep = mep_of(EVENTS)
    limits = BatchLimits(events=N_EVENTS, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=N_SOURCES)
    backend = create_backend("cpu", CHAIN.kernels, threads=threads)
    engine = CHAIN.create_engine(backend, {}, CHAIN.load_trigger(None), limits, with_lists=with_lists)
    try:
        workspace = engine.create_workspace()
        workspace.input_data[: mep.data.nbytes] = mep.data
        workspace.seal([MepInBatch(N_EVENTS, mep.fragments)])
        workspace.submit()
        workspace.wait()
        return workspace.output.copy()
    finally:
        engine.close()


@pytest.mark.parametrize("threads", [1, 8])
def test_each_event_lists_its_sources_with_their_banks(threads: int) -> None:
    content = run(threads).lists["source_banks"]
    values = [content.of_events(name) for name in ("source", "bank_type", "bank_bytes")]
    found = [list(zip(*(of.tolist() for of in event), strict=True)) for event in zip(*values, strict=True)]
    assert found == expected()


def test_an_engine_without_lists_makes_none_and_decides_alike() -> None:
    bare, listed = run(1, with_lists=False), run(1)
    assert bare.lists == {}
    assert bare.accepted.tolist() == listed.accepted.tolist()
    assert bare.flags.tolist() == listed.flags.tolist()


def test_a_chain_without_reports_has_no_words_of_selected_candidates() -> None:
    chain = CHAIN.with_lines(CHAIN.load_trigger(None))
    assert chain.selected is None
    assert not any(column.name.startswith("selected") for column in chain.sequence.columns)
    output = run(1)
    assert output.accepted.any()
    assert output.selected.counts.tolist() == [0] * N_EVENTS


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The events as banks; a source without a bank is not in an event, but in its MEP."""
    path = tmp_path_factory.mktemp("lists") / "events.mdf"
    banks = [
        [RawBank(kind, 1, source, memoryview(payload)) for source, (kind, payload) in sorted(event.items())]
        for event in EVENTS
    ]
    records = [encode_banks(of_event) for of_event in banks]
    path.write_bytes(b"".join(encode_record(record, run=5, checksum=False) for record in records))
    return path


def test_json_results_have_the_number_and_the_values_of_each_event(file: Path, tmp_path: Path) -> None:
    result = tmp_path / "out.json"
    options = ["--chain", "raw", "--backend", "cpu", "--threads", "1", "--json", str(result)]
    done = CliRunner().invoke(app, ["process", str(file), *options])
    assert done.exit_code == 0, done.output
    events = json.loads(result.read_text())["per_event"]
    assert [event["source_banks"] for event in events] == [len(SOURCES)] * N_EVENTS
    found = [list(zip(event["source"], event["bank_type"], event["bank_bytes"], strict=True)) for event in events]
    assert found == expected()


def test_arrays_and_tuples_have_the_values_as_fields(file: Path, tmp_path: Path) -> None:
    array = hltnode.process(file, "source_banks.*", chain="raw", backend="cpu", threads=1)
    found = [
        list(zip(*(event.source_banks[name].to_list() for name in ("source", "bank_type", "bank_bytes")), strict=True))
        for event in array
    ]
    assert found == expected()
    path = tmp_path / "events.parquet"
    options = ["--chain", "raw", "--backend", "cpu", "--threads", "1", "--tuple", str(path)]
    options += ["--fields", "source_banks.bank_bytes,event.n_banks"]
    done = CliRunner().invoke(app, ["process", str(file), *options])
    assert done.exit_code == 0, done.output
    columns = pq.read_table(path).to_pydict()
    (name,) = (name for name in columns if name.endswith("bank_bytes"))
    assert columns[name] == [[nbytes for *_, nbytes in event] for event in expected()]
    with pytest.raises(ValueError, match=r"source_banks\.bank_bytes"):
        hltnode.process(file, "source_banks.bank_byte", chain="raw")
