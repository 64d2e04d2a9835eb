"""hltnode process --json of a streaming chain: times of windows since the start of the stream."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.events.stream_times import sub_slice_numbers, with_stream_times
from hltnode.daemon.commands.stream_demo import windows_in_one_slice
from hltnode.processing.framework.event_files import read_all_events
from hltnode.processing.framework.offline_runner import encode_slices
from hltnode.processing.framework.streaming import HitLayout, Streaming
from hltnode.processing.km3net.chain import CHAIN
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

runner = CliRunner()
N = 12
STREAMING = Streaming(sub_slice_ns=100, margin_before=1, margin_behind=2, hit=HitLayout(size=4, time_offset=0))


def processed(path: Path) -> list[dict[str, Any]]:
    """What `hltnode process` found in each sub-slice."""
    out = path.with_suffix(".json")
    options = ["--chain", "km3net", "--backend", "cpu", "--threads", "1", "--json", str(out)]
    done = runner.invoke(app, ["process", str(path), *options])
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(out.read_text())["per_event"]
    return found


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stream") / "hits.mdf"
    done = runner.invoke(app, ["simulate", "--chain", "km3net", "-n", str(N), "--seed", "3", "-o", str(path)])
    assert done.exit_code == 0, done.output
    return path


def test_windows_of_a_file_have_the_times_of_the_stream(stream: Path) -> None:
    found = processed(stream)
    assert CHAIN.streaming is not None
    length = CHAIN.streaming.sub_slice_ns
    assert [(event["sub_slice"], event["sub_slice_start_ns"]) for event in found] == [(i, i * length) for i in range(N)]
    whole = windows_in_one_slice(CHAIN, CHAIN.streaming, list(read_all_events([stream])))
    # The file is one slice whose first and last sub-slices are margins: windows around them differ from those of the
    # stream without cuts.
    inside = {(start, end) for start, end, _ in whole if 2 * length < start < (N - 3) * length}
    windows = {tuple(window) for event in found for window in event["windows_ns"]}
    assert inside
    assert inside <= windows


def test_slices_of_a_mep_file_have_the_times_of_the_stream(stream: Path, tmp_path: Path) -> None:
    assert CHAIN.streaming is not None
    before, core = CHAIN.streaming.margin_before, 4
    events = list(read_all_events([stream]))
    slices = list(encode_slices(CHAIN, events, core))
    path = tmp_path / "hits.mep"
    path.write_bytes(
        b"".join(encode_mep([bytes(each.data[at : at + size]) for _, at, size in each.fragments]) for each in slices)
    )
    expected = [number * core - before + place for number, each in enumerate(slices) for place in range(each.n_events)]
    assert list(sub_slice_numbers([path], CHAIN.streaming)) == expected
    assert expected[0] < 0


def test_sub_slices_of_several_files_follow_each_other(tmp_path: Path) -> None:
    paths = [tmp_path / "a.mdf", tmp_path / "b.mdf"]
    record = encode_record(encode_banks([RawBank(1, 1, 0x0801, memoryview(bytes(12)))]), run=1)
    for n, path in enumerate(paths, 2):
        path.write_bytes(n * record)
    per_event = [{"start_ns": [-20], "end_ns": [130]} for _ in range(5)]
    found = with_stream_times(per_event, paths, STREAMING)
    assert [event["sub_slice_start_ns"] for event in found] == [0, 100, 200, 300, 400]
    assert [event["windows_ns"] for event in found][:2] == [[[0, 130]], [[80, 230]]]
    assert found[4]["start_ns"] == [-20]
