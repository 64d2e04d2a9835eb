"""The files of a recording."""

from pathlib import Path

import pytest

from hltnode.daemon.recorder.mep_assembly import RecordedMep
from hltnode.daemon.recorder.mep_files import MepFiles


def mep(number: int, nbytes: int, run: int = 7) -> RecordedMep:
    return RecordedMep(run, number, 1, bytes([number]) * nbytes)


def test_no_file_exceeds_its_size_unless_a_single_mep_does(tmp_path: Path) -> None:
    files = MepFiles(tmp_path / "new", max_file_bytes=100)
    sizes = (40, 60, 1, 99, 1, 150, 100)
    for number, nbytes in enumerate(sizes):
        files.write(mep(number, nbytes))
    files.close()
    assert [path.stat().st_size for path in files.finished] == [100, 100, 1, 150, 100]
    assert b"".join(path.read_bytes() for path in files.finished) == b"".join(
        mep(number, nbytes).content for number, nbytes in enumerate(sizes)
    )


def test_each_run_has_a_series_of_its_own_with_final_names_of_complete_files_only(tmp_path: Path) -> None:
    files = MepFiles(tmp_path, max_file_bytes=10)
    for one in (mep(0, 6), mep(1, 6), mep(0, 6, run=8)):
        files.write(one)
    names = ["run_0000000007_00001.mep", "run_0000000007_00002.mep", "run_0000000008_00001.mep.part"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    files.close()
    assert files.finished[-1].name == "run_0000000008_00001.mep"
    with pytest.raises(FileExistsError, match=r"run_0000000007_00001\.mep: exists"):
        MepFiles(tmp_path, max_file_bytes=10).write(mep(2, 6))
