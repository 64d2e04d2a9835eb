"""Headers are written from declarations; headers of another chain are not touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import PROCESSING, DeclarationError, SharedTypes
from hltnode.processing.framework.device_headers import DeviceHeaders
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.lhcb.chain import CHAIN
from tools.chains_of_this_tree import chains_of_this_tree

MakeChain = Callable[[str], Chain]


@pytest.fixture
def make_chain(tmp_path: Path) -> MakeChain:
    """A chain with LHCb's algorithms, with its own list of kernels, in its own folder."""

    def make(name: str) -> Chain:
        kernels = KernelSources(f"{name}/generated/chain_kernels.h", (PROCESSING, tmp_path), "")
        return replace(CHAIN, name=name, kernels=kernels, source=tmp_path / name / "chain.py")

    return make


def make_file(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_headers_of_this_tree_are_up_to_date() -> None:
    headers = DeviceHeaders.of(list(chains_of_this_tree().values()), [PROCESSING])
    assert headers == DeviceHeaders({}, (), ())


def test_a_header_that_the_chain_does_not_declare_is_removed_and_others_are_not(
    make_chain: MakeChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forgotten = make_file(tmp_path / "one" / "detector" / "generated" / "old.h")
    of_another = make_file(tmp_path / "two" / "detector" / "generated" / "old.h")
    chain = make_chain("one")
    make_file(chain.kernel_list, "differs")
    headers = DeviceHeaders.of([chain], [tmp_path])
    assert headers.report() == 1
    assert forgotten.is_file()
    assert headers.write() == 0
    assert not forgotten.exists()
    assert of_another.is_file()
    assert chain.kernel_list.read_text() == chain.headers[chain.kernel_list]
    assert DeviceHeaders.of([chain], [tmp_path]).report() == 0
    shown = capsys.readouterr().out
    assert f"wrote {chain.kernel_list}" in shown
    assert f"removed {forgotten}" in shown


def test_chains_that_lie_in_one_folder_keep_the_headers_of_each_other(make_chain: MakeChain, tmp_path: Path) -> None:
    outer = make_chain("one")
    inner = replace(
        outer,
        name="inner",
        source=tmp_path / "one" / "inner" / "chain.py",
        kernels=replace(outer.kernels, header="one/inner/generated/chain_kernels.h"),
    )
    inner.kernel_list.parent.mkdir(parents=True)
    DeviceHeaders.of([outer, inner], [tmp_path]).write()
    assert inner.kernel_list.is_file()
    assert DeviceHeaders.of([outer, inner], [tmp_path]).report() == 0


def test_a_header_of_another_package_that_differs_is_named_and_not_written(
    make_chain: MakeChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = SharedTypes(str(tmp_path / "elsewhere" / "types.py"), "foreign_types", sizes={"n": 3})
    chain = make_chain("one")
    chain = replace(
        chain, types=(*chain.types, foreign), kernels=replace(chain.kernels, folders=(PROCESSING, tmp_path))
    )
    make_file(chain.kernel_list)
    headers = DeviceHeaders.of([chain], [chain.source.parent])
    assert headers.foreign == (foreign.path,)
    assert headers.write() == 1
    assert not foreign.path.exists()
    assert "belongs to another package" in capsys.readouterr().err


def test_two_declarations_of_one_header_are_refused(make_chain: MakeChain) -> None:
    chain = make_chain("one")
    other = replace(chain, more_algorithms=(), sequence=CHAIN.with_sequence("velo").sequence, counts={})
    with pytest.raises(DeclarationError, match="and another chain declare it differently"):
        DeviceHeaders.of([chain, other], [])
