"""The files in the Helm chart are copies of the files of the deployment."""

from pathlib import Path

import pytest

from tools.copy_chart_files import COPIES, DEPLOY, SOURCES, outdated, write


@pytest.fixture
def deploy(tmp_path: Path) -> Path:
    for name in SOURCES:
        source = tmp_path / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_bytes((DEPLOY / name).read_bytes())
    write(tmp_path)
    return tmp_path


def test_the_chart_carries_equal_copies() -> None:
    assert not list(outdated(DEPLOY))


def test_a_change_of_a_source_makes_its_copy_outdated_until_it_is_written_again(deploy: Path) -> None:
    source, copy = deploy / SOURCES[1], deploy / COPIES / SOURCES[1].name
    source.write_text("groups: []\n")
    assert list(outdated(deploy)) == [(source, copy)]
    assert write(deploy) == [copy]
    assert copy.read_text() == "groups: []\n"
    assert not list(outdated(deploy))


def test_a_link_in_place_of_a_copy_is_outdated(deploy: Path) -> None:
    source, copy = deploy / SOURCES[0], deploy / COPIES / SOURCES[0].name
    copy.unlink()
    copy.symlink_to(source)
    assert list(outdated(deploy)) == [(source, copy)]
    write(deploy)
    assert not copy.is_symlink()
    assert copy.read_bytes() == source.read_bytes()
