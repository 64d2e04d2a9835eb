"""The cache of simulated samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.processing.offline.sample_cache import SampleCache, digest_of_files, user_cache


@pytest.fixture
def cache(tmp_path: Path) -> SampleCache:
    return SampleCache(tmp_path / "samples")


def test_a_written_sample_is_complete_and_found_by_its_identity(cache: SampleCache) -> None:
    path = cache.path("minbias", {"seed": 1})
    assert not cache.is_complete(path)
    assert cache.write(path, [b"ab", b"cd"]) == 4
    assert cache.is_complete(path)
    assert path.read_bytes() == b"abcd"
    assert cache.path("minbias", {"seed": 1}) == path
    others = {cache.path(name, identity) for name, identity in (("minbias", {"seed": 2}), ("z", {"seed": 1}))}
    assert path not in others
    assert len(others) == 2


@pytest.mark.parametrize("damage", ["a byte", "the end", "more", "no digest", "half a digest", "no file"])
def test_a_damaged_or_partial_sample_counts_as_missing(cache: SampleCache, damage: str) -> None:
    path = cache.path("minbias", {})
    cache.write(path, [b"abcd"])
    digest = path.with_suffix(".sha256")
    match damage:
        case "a byte":
            path.write_bytes(b"abce")
        case "the end":
            path.write_bytes(b"abc")
        case "more":
            path.write_bytes(b"abcde")
        case "no digest":
            digest.unlink()
        case "half a digest":
            digest.write_text(digest.read_text()[:20])
        case "no file":
            path.unlink()
    assert not cache.is_complete(path)
    cache.write(path, [b"abcd"])
    assert cache.is_complete(path)


def test_an_interrupted_write_leaves_the_sample_as_it_was(cache: SampleCache) -> None:
    def interrupted() -> Iterator[bytes]:
        yield b"xy"
        raise KeyboardInterrupt

    path = cache.path("minbias", {})
    with pytest.raises(KeyboardInterrupt):
        cache.write(path, interrupted())
    assert list(cache.files()) == []
    cache.write(path, [b"abcd"])
    with pytest.raises(KeyboardInterrupt):
        cache.write(path, interrupted())
    assert cache.is_complete(path)
    assert len(list(cache.files())) == 2


def test_clearing_removes_every_file_and_says_how_much(cache: SampleCache) -> None:
    assert cache.clear() == (0, 0)
    for name in ("minbias", "z"):
        cache.write(cache.path(name, {}), [b"abcd"])
    (cache.folder / "z.mdf.77.part").write_bytes(b"12")
    size = sum(path.stat().st_size for path in cache.folder.iterdir())
    assert cache.clear() == (2, size)
    assert list(cache.folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = SampleCache(tmp_path / "file" / "samples")
    with pytest.raises(ValueError, match=r"minbias-.*mdf: cannot be written: Not a directory"):
        cache.write(cache.path("minbias", {}), [b"ab"])


def test_the_user_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert user_cache() == Path("/caches/hltnode/samples")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/user")
    assert user_cache() == Path("/home/user/.cache/hltnode/samples")


def test_a_changed_file_changes_the_digest_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_text("1")
    before = digest_of_files([tmp_path])
    (tmp_path / "deep" / "a.pyc").write_text("compiled")
    assert digest_of_files([tmp_path]) == before
    (tmp_path / "deep" / "a.py").write_text("2")
    assert digest_of_files([tmp_path]) != before
