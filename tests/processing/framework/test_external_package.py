"""docs/how-to/add-a-chain.md works, followed literally: a package outside of the repository, with hltnode's wheel."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uproot

from hltnode.processing.framework.backends import cuda_installation
from hltnode.processing.framework.backends.cuda_kernels import compile_kernels
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.kernel_sources import KernelSources, included_files
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.protocol.raw_data.mdf import iter_records
from tests.built_wheel import environment_with, shared_wheel
from tests.docs.followed_page import ROOT, Reader, blocks, environment
from tests.processing.framework.chain_builder import compiler
from tests.processing.framework.nvrtc_library import nvrtc_of

PAGE = ROOT / "docs" / "how-to" / "add-a-chain.md"
THRESHOLD, MIN_HITS, TILES_OF_BOARD = 30, 8, 64
"""What the page declares."""
NOT_RUN = {"the test installs the wheel that it has built", "what it prints depends on the machine"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_wheel(tmp_path_factory)


@pytest.fixture(scope="module")
def reader(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """The reader, after the last block of the page."""
    compiler()
    root = tmp_path_factory.mktemp("reader")
    with Reader(root, "package", environment_with(wheel, root / "environment")) as reader:
        reader.follow(PAGE)
        yield reader


def test_the_wheel_has_every_source_of_a_chain_and_no_other_cpp_file(wheel: Path) -> None:
    needed = {f"hltnode/processing/{file.name}" for file in included_files(CHAIN.kernels.header, CHAIN.kernels.folders)}
    there = set(zipfile.ZipFile(wheel).namelist())
    assert needed - there == set()
    assert {name for name in there if name.endswith(".cpp")} == {name for name in needed if name.endswith(".cpp")}


def test_each_block_of_commands_is_run_but_those_that_are_named_here() -> None:
    assert {block.mark.removeprefix("skip, ") for block in blocks(PAGE) if block.mark.startswith("skip, ")} == NOT_RUN


def hits_of(path: Path) -> list[dict[int, int]]:
    """Charge by tile of the hits of each event of a file, from its banks."""
    found = []
    for record in iter_records(path.read_bytes()):
        charges = {
            TILES_OF_BOARD * (bank.source_id & 0x7FF) + tile: charge
            for bank in record.banks()
            if bank.type == 192
            for tile, charge in enumerate(bytes(bank.payload))
        }
        found.append({tile: charge for tile, charge in charges.items() if charge >= THRESHOLD})
    return found


def rows(path: Path) -> list[tuple[bool, dict[int, int]]]:
    """Decision and hits of each event of a JSON result."""
    events: list[dict[str, Any]] = json.loads(path.read_text())["per_event"]
    assert all(len(event["tile"]) == event["hit_list"] == event["hits"] for event in events)
    return [(event["accepted"], dict(zip(event["tile"], event["charge"], strict=True))) for event in events]


@pytest.mark.process
@pytest.mark.loopback
@pytest.mark.timeout(500)
@pytest.mark.expensive("builds a package and runs each command of the page")
def test_the_package_of_the_page_computes_what_the_page_says(reader: Reader) -> None:
    expected = [(len(hits) >= MIN_HITS, hits) for hits in hits_of(reader.folder / "events.mdf")]
    assert len(expected) == 500
    assert rows(reader.folder / "result.json") == expected
    branches = uproot.open(reader.folder / "hits.root")["events"].arrays(library="np")
    (charges,) = (branches[name] for name in branches if "charge" in name)
    assert np.concatenate(charges).tolist() == [charge for _, hits in expected for charge in hits.values()]
    # Of the node: files have the accepted events, in the order in which MEPs were computed.
    accepted = [hits for kept, hits in expected if kept]
    assert 20 < len(accepted) < 300
    kept_by_node = rows(reader.folder / "accepted.json")
    assert sorted(map(str, kept_by_node)) == sorted(str((True, hits)) for hits in accepted)
    assert (reader.folder / "event.html").read_text().count("<rect") == 4 * TILES_OF_BOARD


@pytest.mark.process
@pytest.mark.timeout(500)
def test_without_a_gpu_the_back_end_cuda_says_what_is_missing(reader: Reader) -> None:
    if cuda_installation.is_available():
        pytest.skip("a GPU is there")
    (command,) = [block.content for block in blocks(PAGE) if block.content.endswith("--backend cuda\n")]
    done = subprocess.run(
        ["bash", "-ec", command], cwd=reader.folder, env=environment(reader.programs), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: the CUDA back end needs ")
    assert len(done.stderr.splitlines()) == 1


# It runs with the tests above, so that the package of the page is built once.
@pytest.mark.alone
@pytest.mark.timeout(500)
def test_the_kernel_of_the_page_compiles_for_gpus(reader: Reader) -> None:
    kernels = KernelSources("tiles/generated/chain_kernels.h", (PROCESSING, reader.folder), "no library")
    cubin = compile_kernels(nvrtc_of(13), kernels, 90)
    for name in (b"tiles_find_hits", b"copy_list", b"list_offsets", b"fragment_offsets"):
        assert name in cubin
