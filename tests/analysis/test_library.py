"""`import hltnode`: what is public, what it imports, and the parts that stand on commands' own code."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hltnode
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.tools.simulation import LhcbSimulation
from hltnode.processing.offline.sample_cache import NamedSample
from tests.analysis.conftest import run

ROOT = Path(__file__).parents[2]
INVALID_SAMPLES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"simple": "z"}, "option 'simple': the simulation of chain lhcb has none; there are sample"),
    ({"events": 0}, "expected at least 1"),
    ({"output": "c.txt"}, "ends in .mdf or .mep"),
)


def test_every_public_name_is_there_and_documented() -> None:
    for name in hltnode.__all__:
        assert getattr(hltnode, name) is not None
        if name != "__version__":
            assert getattr(hltnode, name).__doc__, name
    assert sorted(hltnode.__all__) == dir(hltnode)
    with pytest.raises(AttributeError, match="no attribute 'reconstruct'"):
        getattr(hltnode, "reconstruct")  # noqa: B009 - mypy knows that there is none


def test_the_stub_has_the_public_names_of_the_module() -> None:
    stub = ast.parse((ROOT / "library" / "hltnode" / "__init__.pyi").read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted({*imported, "__version__"}) == sorted(hltnode.__all__)
    for name, (module, there) in imported.items():
        assert module is not None
        assert getattr(importlib.import_module(module), there) is getattr(hltnode, name)


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, hltnode; print([name for name in sys.modules if name.split('.')[0] in ('numpy', 'awkward')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_simulated_events_are_those_of_the_command(tmp_path: Path) -> None:
    path = hltnode.simulate(tmp_path / "a.mdf", 3, seed=5, run=9, jobs=1, sample="bjpsik")
    run("simulate", "-n", 3, "--seed", 5, "--run", 9, "--sample", "bjpsik", "-o", tmp_path / "b.mdf")
    assert path.read_bytes() == (tmp_path / "b.mdf").read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        hltnode.simulate(path, 1)
    hltnode.simulate(path, 1, jobs=1, overwrite=True)
    assert len(hltnode.open(path)) == 1
    for arguments, message in INVALID_SAMPLES:
        given: dict[str, Any] = {"output": tmp_path / "c.mdf", "events": 1} | arguments
        with pytest.raises(ValueError, match=message):
            hltnode.simulate(**given)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a.mdf", tmp_path / "b.mdf"]


def test_a_cached_sample_is_that_of_the_command_and_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trigger: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = {"sample": Sample.JPSI}
    few = {"few": NamedSample(events=3, options=options, description="few")}
    monkeypatch.setattr(LhcbSimulation, "named_samples", few)
    seen: list[int] = []
    path = hltnode.cached_sample("few", jobs=1, progress=seen.append)
    assert sum(seen) == 3
    assert path.parent == tmp_path / "cache" / "hltnode" / "samples"
    assert path.read_bytes() == hltnode.simulate(tmp_path / "a.mdf", 3, jobs=1, sample="jpsi").read_bytes()
    assert hltnode.cached_sample("few", progress=seen.append) == path
    assert sum(seen) == 3
    out = tmp_path / "out.json"
    run("rates", "--cached", "few", "--trigger", trigger, "--backend", "cpu", "--json", out)
    of_command = json.loads(out.read_text())
    assert of_command["input"] == [str(path)]
    assert hltnode.rates(path, trigger=trigger, backend="cpu").lines == of_command["lines"]
    with pytest.raises(ValueError, match="no sample 'fwe'; the chain has few"):
        hltnode.cached_sample("fwe")


def test_rates_are_those_of_the_command(real_events: Path, trigger: Path, tmp_path: Path) -> None:
    found = hltnode.rates([real_events], trigger=trigger, crossing_rate=1e6, backend="cpu", threads=1)
    out = tmp_path / "out.json"
    options = ("--trigger", trigger, "--crossing-rate", 1e6, "--backend", "cpu", "--threads", 1)
    output = run("rates", real_events, *options, "--json", out)
    expected = json.loads(out.read_text())
    assert (found.events, found.tck, found.sequence) == (7, expected["tck"], expected["sequence"])
    assert found.total == expected["total"]
    assert found.lines == expected["lines"]
    assert found.overlap == expected["overlap"]
    assert [row.split() for row in str(found).splitlines()[4:]] == [row.split() for row in output.splitlines()[4:]]
    assert "4 lines on 7 events" in repr(found)
    with pytest.raises(ValueError, match="expected a rate above 0"):
        hltnode.rates(real_events, crossing_rate=0.0)


def test_a_picture_is_shown_inline_and_saved(real_events: Path, tmp_path: Path) -> None:
    event = hltnode.open(real_events)[2]
    picture = hltnode.display(event, sequence="velo")
    assert "6003" in picture.title
    inline = picture._repr_html_()
    assert inline.startswith('<iframe srcdoc="&lt;!doctype html')
    page = picture.save(tmp_path / "event.html").read_text(encoding="utf-8")
    run("display", real_events, "--event", 2, "--sequence", "velo", "-o", tmp_path / "other.html")
    assert page == (tmp_path / "other.html").read_text(encoding="utf-8")
    assert hltnode.display(real_events, 2, sequence="velo").page == page
