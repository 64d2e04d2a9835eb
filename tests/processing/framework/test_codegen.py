"""Generated structs match the layout of the C++ compiler, and outdated headers are refused."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.batch import BATCH_HEADER, event_flags
from hltnode.processing.framework.codegen import algorithm_header, include_path, parameter_columns, parameter_words
from hltnode.processing.framework.collections import PROCESSING, U32, Collection, DeclarationError, Placement
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, Grid, Scratch
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE
from hltnode.processing.lhcb.velo.tracking.kill_clones import kill_clones

COMPILER = shutil.which("c++") or shutil.which("g++")


def test_the_committed_headers_are_what_the_declarations_say() -> None:
    CHAIN.check_headers()
    assert CHAIN.kernel_list.read_text() == CHAIN.headers[CHAIN.kernel_list]


def test_an_engine_refuses_a_sequence_whose_header_is_out_of_date() -> None:
    changed = replace(kill_clones, constants=())
    algorithms = tuple(changed if algorithm is kill_clones else algorithm for algorithm in HLT1_SEQUENCE)
    chain = replace(CHAIN.with_sequence("velo"), sequence=AlgorithmSequence(algorithms))
    with pytest.raises(DeclarationError, match=r"chain lhcb: generated headers are out of date: velo_kill_clones\.h"):
        chain.check_headers()


def test_a_chain_whose_kernels_are_listed_elsewhere_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"chain lhcb: its kernels are listed in .*/chain_kernels\.h"):
        replace(CHAIN, kernels=replace(CHAIN.kernels, header="lhcb/generated/other.h"))


def test_what_is_only_read_is_const() -> None:
    header = algorithm_header(kill_clones)
    assert "const uint32_t* candidate_count;" in header
    assert "        uint8_t* hit_count;" in header
    assert "        uint32_t* hit_owner;" in header
    assert "float max_shared_fraction;" in header


def test_a_kernel_file_outside_the_include_folders_is_refused() -> None:
    with pytest.raises(DeclarationError, match="is not below one of the include folders"):
        include_path(Path("/elsewhere/kernel.cuh"))


def test_the_header_of_the_batch_is_not_named_by_an_algorithm() -> None:
    from hltnode.processing.framework.batch import batch_header

    algorithm = replace(kill_clones, reads=(batch_header,))
    with pytest.raises(DeclarationError, match="velo_kill_clones names batch: every kernel has it as `batch`"):
        algorithm_header(algorithm)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_parameter_structs_have_their_pointers_in_the_order_of_the_engine(tmp_path: Path) -> None:
    limits = BatchLimits(events=8, meps=1, input_bytes=4096, rows=8)
    lines = [f'#include "{include_path(algorithm.header)}"' for algorithm in CHAIN.algorithms]
    for algorithm in CHAIN.algorithms:
        words = len(parameter_words(algorithm, limits, algorithm.launches[0]))
        nbytes = 8 * len(parameter_columns(algorithm)) + 4 * words
        lines.append(f"static_assert(sizeof({algorithm.name}_parameters) == {nbytes});")
    source = tmp_path / "sizes.cpp"
    source.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [str(COMPILER), "-std=c++17", "-fsyntax-only", f"-I{PROCESSING}", str(source)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize(
    "placement",
    [
        Placement.fixed(64),
        Placement(offsets=Collection("c", capacity=lambda _: 1).per_event("offset", U32, extra=1)),
        Placement(
            offsets=Collection("c", capacity=lambda _: 1).per_event("offset", U32, extra=1),
            divisor=64,
            per_event=1,
            times=32,
        ),
    ],
)
def test_both_languages_agree_where_the_part_of_an_event_begins(placement: Placement, tmp_path: Path) -> None:
    objects = Collection("objects", capacity=lambda limits: limits.events, placement=placement)
    algorithm = Algorithm(
        name="probe",
        source=PROCESSING / "probe.cuh",
        grid=Grid.EVENTS,
        block_size=1,
        updates=(event_flags,),
        scratch=(Scratch("place", U32, per=objects),),
    )
    library = tmp_path / "probe.so"
    (tmp_path / "probe.cpp").write_text(
        algorithm_header(algorithm)
        + 'extern "C" uint32_t first(const uint32_t* offsets, uint32_t event)\n{\n    probe_parameters p{};\n'
        + ("    p.scratch.c_offset = offsets;\n" if placement.offsets else "    (void)offsets;\n")
        + "    return p.scratch.first(event);\n}\n"
    )
    command = [str(COMPILER), "-std=c++17", "-shared", "-fPIC", f"-I{PROCESSING}", str(tmp_path / "probe.cpp")]
    subprocess.run([*command, "-o", str(library)], check=True)
    first = ctypes.CDLL(str(library)).first
    offsets = np.array([0, 17, 1000, 70_000, 70_001], np.uint32)
    expected = placement.first(offsets if placement.offsets else None, 4).tolist()
    assert [first(ctypes.c_void_p(offsets.ctypes.data), event) for event in range(4)] == expected


def test_the_batch_header_has_the_size_that_the_host_writes() -> None:
    assert BATCH_HEADER.dtype.itemsize == 16
