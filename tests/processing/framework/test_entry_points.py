"""Entry points of installed packages; here a package is a folder on the path with metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.framework.entry_points import entry_point
from hltnode.processing.offline.chain_tools import TOOLS_ENTRY_POINTS, installed_tools
from hltnode.processing.selection.trigger_chain import installed_chain

GROUP = "hltnode.chains"
LHCB = "hltnode.processing.lhcb.chain:CHAIN"


def install(folder: Path, package: str, *entries: str, group: str = GROUP) -> Path:
    """Write the metadata of a package into its own folder; returns the folder."""
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("\n".join([f"[{group}]", *entries, ""]))
    return folder


def test_the_entry_point_of_the_only_package_with_a_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "one", "tpc = one.chain:CHAIN"))
    found = entry_point(GROUP, "tpc", "chain")
    assert found.value == "one.chain:CHAIN"
    assert found.dist is not None
    assert found.dist.name == "one"


def test_two_packages_with_one_name_are_both_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path / "a", "one", "tpc = one.chain:CHAIN"))
    monkeypatch.syspath_prepend(install(tmp_path / "b", "two", "tpc = two.tpc:TPC"))
    with pytest.raises(ValueError, match="'tpc' is offered by 2 packages: ") as error:
        entry_point(GROUP, "tpc", "chain")
    assert "one (one.chain:CHAIN), two (two.tpc:TPC)" in str(error.value)


def test_two_packages_that_offer_the_same_object_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path / "a", "one", "tpc = base.chain:CHAIN"))
    monkeypatch.syspath_prepend(install(tmp_path / "b", "two", "tpc = base.chain:CHAIN"))
    with pytest.raises(ValueError, match=r"one \(base\.chain:CHAIN\), two \(base\.chain:CHAIN\)"):
        entry_point(GROUP, "tpc", "chain")


def test_a_package_that_is_twice_on_the_path_is_one_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("a", "b"):
        monkeypatch.syspath_prepend(install(tmp_path / folder, "one", "tpc = one.chain:CHAIN"))
    monkeypatch.syspath_prepend(tmp_path / "a")
    assert entry_point(GROUP, "tpc", "chain").value == "one.chain:CHAIN"


def test_one_name_in_two_groups_is_no_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path / "a", "one", "tpc = one.chain:CHAIN"))
    monkeypatch.syspath_prepend(install(tmp_path / "b", "two", "tpc = two.tools:TOOLS", group="hltnode.other"))
    assert entry_point(GROUP, "tpc", "chain").value == "one.chain:CHAIN"
    assert entry_point("hltnode.other", "tpc", "set of tools").value == "two.tools:TOOLS"


def test_a_command_refuses_a_second_package_that_offers_the_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "second", f"lhcb = {LHCB}"))
    result = CliRunner().invoke(app, ["tck", "list", "--chain", "lhcb"])
    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert f"chain 'lhcb' is offered by 2 packages: hltnode ({LHCB}), second ({LHCB})" in said


def test_a_second_package_that_offers_tools_of_the_chain_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installed_tools("lhcb").simulation is not None
    value = "hltnode.processing.lhcb.offline.tools:TOOLS"
    monkeypatch.syspath_prepend(install(tmp_path, "second", f"lhcb = {value}", group=TOOLS_ENTRY_POINTS))
    with pytest.raises(ValueError, match="set of tools 'lhcb' is offered by 2 packages: ") as error:
        installed_tools("lhcb")
    assert f"hltnode ({value}), second ({value})" in str(error.value)


def test_a_chain_is_installed_under_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_chain("lhcb").name == "lhcb"
    monkeypatch.syspath_prepend(install(tmp_path, "one", f"hlt1 = {LHCB}"))
    with pytest.raises(ValueError, match=r"chain 'hlt1': .* has the name 'lhcb'"):
        installed_chain("hlt1")
