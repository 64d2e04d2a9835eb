"""Reader of dumps of LHCb's own CPU forward tracks (`forward_tracks/RUN_EVENT.bin`): a reference for the checker.

All little-endian: u32 number of tracks; for each f32 eta, p, pt (MeV), u32 number of ids, u32 LHCbIDs in the scheme of
before 2022: VELO (with orientation bits), then SciFi, then UT. The layout was inferred from sizes and values; p /
cosh(eta) = pt.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.protocol.lhcb.lhcb_id import in_2022_scheme

# Words of a track before its ids.
_HEADER = 4
_PT_TOLERANCE = 1e-3


class ForwardTracksError(ValueError):
    """A dump that cannot be read; the message names the file."""


def read_forward_tracks(paths: Sequence[Path]) -> TrackTable:
    """The tracks of the files as those of events 0, 1, ... Raises ForwardTracksError."""
    event: list[int] = []
    kinematics: list[NDArray[np.float32]] = []
    ids: list[NDArray[np.uint32]] = []
    for number, path in enumerate(paths):
        for header, of_track in _tracks(path):
            event.append(number)
            kinematics.append(header)
            ids.append(of_track)
    eta, p, pt = np.array(kinematics, dtype=np.float64).reshape(-1, 3).T
    return TrackTable(
        event=np.array(event, dtype=np.int64),
        ids=in_2022_scheme(np.concatenate([*ids, np.empty(0, np.uint32)])),
        n_ids=np.array([len(of_track) for of_track in ids], dtype=np.int64),
        p=p,
        pt=pt,
        eta=eta,
    )


def _tracks(path: Path) -> list[tuple[NDArray[np.float32], NDArray[np.uint32]]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ForwardTracksError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) % 4 or not content:
        raise ForwardTracksError(f"{path}: {len(content)} bytes are not words of 32 bits")
    words = np.frombuffer(content, dtype="<u4")
    tracks = []
    at = 1
    for i in range(int(words[0])):
        n_ids = int(words[at + 3]) if at + _HEADER <= len(words) else len(words)
        if at + _HEADER + n_ids > len(words):
            raise ForwardTracksError(f"{path}: track {i} of {words[0]} needs more than the {len(words)} words")
        eta, p, pt = words[at : at + 3].view("<f4").tolist()
        if not abs(p / np.cosh(eta) - pt) <= _PT_TOLERANCE * pt:
            raise ForwardTracksError(f"{path}: track {i} has p = {p:g}, eta = {eta:g}, but pt = {pt:g}")
        tracks.append((words[at : at + 3].view("<f4"), words[at + _HEADER : at + _HEADER + n_ids]))
        at += _HEADER + n_ids
    if at != len(words):
        raise ForwardTracksError(f"{path}: {words[0]} tracks end at word {at} of {len(words)}")
    return tracks
