"""Where compiled kernels are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from hltnode.processing.framework.backends.kernel_cache import cache_folder, read_cached, write_cached


@pytest.fixture(autouse=True)
def _no_folder_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CACHE_DIRECTORY", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


def test_systemd_comes_before_the_user_and_the_user_before_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    assert cache_folder() == Path("/home/user/.cache/hltnode")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/hltnode")
    monkeypatch.setenv("CACHE_DIRECTORY", "/var/cache/hltnode")
    assert cache_folder() == Path("/var/cache/hltnode")


def test_a_user_without_a_home_has_no_cache_and_is_told_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.warns(UserWarning, match="this user has no home; XDG_CACHE_HOME names a folder"):
        assert cache_folder() is None
    assert read_cached(None) is None
    assert write_cached(None, b"kernels") is False


def test_a_damaged_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "kernels"
    assert write_cached(path, b"kernels")
    assert read_cached(path) == b"kernels"
    path.write_bytes(b"x" + path.read_bytes()[1:])
    assert read_cached(path) is None
