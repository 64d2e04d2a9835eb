"""Public data of KM3NeT: time slices of the DAQ through the chain, beside brute force, and detector files.

The tests are skipped where the package km3net-testdata is not installed; one needs km3pipe, too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.km3net.detector_constants import SUB_SLICE_NS
from hltnode.processing.km3net.geometry.detx import read_detx
from hltnode.processing.km3net.geometry.pmt_table import Detector, building_block
from hltnode.protocol.km3net.hit_banks import HIT
from tests.processing.km3net.public_data import DaqSlice, daq_slices, public_data
from tests.processing.km3net.triggers.test_find_candidates import check

L1_SLICES = "daq/IO_TSL1_1003.dat"
PMTS_OF_MODULE = 31
FILES = {
    "detx_v1.detx": (18, 2),
    "detx_v2.detx": (18, 2),
    "detx_v3.detx": (18, 2),
    "detx_v3_whitespace.detx": (18, 2),
    "detx_v4.detx": (2_790, 5),
    "detx_v5.detx": (3_348, 6),
    "km3net_offline.detx": (2_790, 5),
    "D_ORCA006_t.A02181836.p.A02181837.r.A02182001.detx": (3_348, 6),
    "KM3NeT_00000133_20221025.detx": (11_718, 21),
    "KM3NeT_-00000001_20171212.detx": (64_170, 115),
    "km3net_jul13_90m_r1494_corrected.detx": (64_170, 115),
    "orca_115strings_av23min20mhorizontal_18OMs_alt9mvertical_v1.detx": (64_170, 115),
    "orca_115strings_av20min17mhorizontal_18OMs_alt9mvertical_v2.detx": (64_170, 115),
}
"""PMTs and lines of each file. The last two give no floors."""


def slices() -> list[DaqSlice]:
    return daq_slices((public_data() / L1_SLICES).read_bytes())


def sub_slices_of(of: DaqSlice) -> tuple[Detector, list[NDArray[np.void]]]:
    """The sub-slices with hits, and the one behind each. No file has the places of these 15 modules: here they are the
    floors of one line, in the order of their numbers, so hits are real and coincidences of neighbours are not.
    """
    modules = np.array(sorted(of.modules))
    hits = np.zeros(len(of.hits), HIT)
    hits["pmt"] = np.searchsorted(modules, of.hits["module"]) * PMTS_OF_MODULE + of.hits["channel"]
    hits["charge"] = of.hits["time_over_threshold"]
    number, hits["time"] = np.divmod(of.hits["time"], SUB_SLICE_NS)
    with_hits = np.unique(number)
    wanted = np.unique(np.concatenate([with_hits, with_hits + 1]))
    empty = np.zeros(0, HIT)
    return building_block(1, len(modules), PMTS_OF_MODULE), [empty, *(hits[number == each] for each in wanted), empty]


def test_ten_slices_of_real_hits_give_the_candidates_of_brute_force() -> None:
    read = slices()
    assert len(read) == 10
    candidates = 0
    for each in read:
        detector, sub_slices = sub_slices_of(each)
        assert sum(map(len, sub_slices)) == len(each.hits) == 1_800
        found = check(sub_slices, detector)
        candidates += sum(map(len, found.candidates))
    assert candidates > 1_000


@pytest.mark.filterwarnings("ignore")
def test_slices_are_read_as_km3pipe_reads_them() -> None:
    path = public_data() / L1_SLICES
    daq = pytest.importorskip("km3pipe.io.daq", reason="km3pipe is not installed (pip install km3pipe)")
    parser, content, read = daq.TimesliceParser(), path.read_bytes(), slices()
    at = 0
    for each in read:
        size = int.from_bytes(content[at : at + 4], "little")
        blob = parser.process({"RawBytes": content[at : at + size]})
        at += size
        assert int(blob["TimesliceInfo"]["frame_index"][0]) == each.number
        assert tuple(blob["TimesliceFrameInfos"]) == each.modules
        theirs = blob["TSHits"]
        for ours, name in (("module", "dom_id"), ("channel", "channel_id"), ("time", "time"),
                           ("time_over_threshold", "tot")):  # fmt: skip
            np.testing.assert_array_equal(each.hits[ours].astype(np.int64), np.asarray(theirs[name], np.int64))
    assert at == len(content)


@pytest.mark.parametrize("name", FILES)
def test_detector_files_of_every_version_are_read(name: str) -> None:
    detector = read_detx(public_data() / "detx" / name)
    n_pmts, n_lines = FILES[name]
    assert len(detector.pmts) == n_pmts
    assert len(np.unique(detector.pmts["line"])) == n_lines
    # 31 PMTs in a module; 9 in the small files.
    _, counts = np.unique(detector.places, return_counts=True)
    assert set(counts.tolist()) <= {3, 31}


def test_floors_that_a_file_does_not_give_go_up_the_line() -> None:
    name = "orca_115strings_av23min20mhorizontal_18OMs_alt9mvertical_v1.detx"
    pmts = read_detx(public_data() / "detx" / name).pmts
    assert sorted(set(pmts["floor"].tolist())) == list(range(1, 19))
    for line in np.unique(pmts["line"]):
        of_line = pmts[pmts["line"] == line]
        heights = [of_line["z"][of_line["floor"] == floor].mean() for floor in range(1, 19)]
        assert all(8.0 < apart < 12.0 for apart in np.diff(heights))


def test_a_comment_that_continues_in_the_next_line_is_named() -> None:
    file: Path = public_data() / "detx" / "detx_v5_invalid_multiline_comments.detx"
    with pytest.raises(ValueError, match=r"line \d+: 2 fields, expected 4 of a module"):
        read_detx(file)
