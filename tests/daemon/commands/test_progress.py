"""Progress of a command: a bar with a total on a terminal, nothing anywhere else; compilations are named."""

import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from hltnode.daemon.commands import progress
from hltnode.daemon.commands.progress import count_events, event_progress, named_compilation
from hltnode.daemon.commands.text_console import TextConsole
from hltnode.processing.framework.backends.compilation import compiling, observed_by
from hltnode.protocol.raw_data.mdf import encode_record


@dataclass(frozen=True)
class Screen:
    """What the console of the commands writes to; it is a terminal or not."""

    stream: io.StringIO
    is_terminal: bool


@pytest.fixture(params=[True, False], ids=["terminal", "file"])
def screen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Screen:
    stream = io.StringIO()
    monkeypatch.setattr(progress, "console", TextConsole(file=stream, force_terminal=request.param, width=100))
    return Screen(stream, request.param)


def test_a_bar_shows_done_total_and_rate_on_a_terminal_only(screen: Screen) -> None:
    with event_progress("processing", 200) as processed:
        processed(50)
        processed(150)
    if screen.is_terminal:
        assert "processing" in screen.stream.getvalue()
        assert "200/200" in screen.stream.getvalue()
        assert "events/s" in screen.stream.getvalue()
    else:
        assert screen.stream.getvalue() == ""


def test_the_total_is_counted_for_a_terminal_only(screen: Screen, tmp_path: Path) -> None:
    path = tmp_path / "events.mdf"
    path.write_bytes(encode_record(b"", run=1) * 7)
    assert count_events([path, path], 3) == (42 if screen.is_terminal else None)
    assert count_events([tmp_path / "absent.mdf"]) is None
    assert screen.stream.getvalue() == ""


def test_a_long_count_is_given_up(screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.mdf"
    path.write_bytes(encode_record(b"", run=1) * 7)
    monkeypatch.setattr(progress, "COUNT_SECONDS", -1.0)
    assert count_events([path]) is None


@pytest.mark.parametrize("cached", [True, False])
def test_a_compilation_is_named_with_its_time(screen: Screen, cached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 22.2])
    monkeypatch.setattr("hltnode.daemon.commands.progress.time.monotonic", lambda: next(times))
    with observed_by(named_compilation), compiling(cached=cached):
        pass
    after = "cached afterwards" if cached else "not cached: each start compiles them again"
    expected = f"compiling kernels ...\ncompiling kernels ... 12 s, {after}\n" if screen.is_terminal else ""
    assert screen.stream.getvalue() == expected


def test_without_an_observer_a_compilation_is_silent(screen: Screen) -> None:
    with compiling(cached=True):
        pass
    assert screen.stream.getvalue() == ""
