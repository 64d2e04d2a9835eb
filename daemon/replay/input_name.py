"""The name of an input in hellos: equal for the same events in the same MEPs, different for others."""

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from hltnode.daemon.replay.input_files import FeedError, InputFiles

if TYPE_CHECKING:
    from hltnode.daemon.replay.mep_source import Packing

# Files up to this size are read whole. Larger ones are compared by their size, their ends and pieces between them:
# reading a terabyte before the first MEP would take an hour.
_WHOLE_BYTES = 256 << 20
_PIECE_BYTES = 64 << 10
_PIECES = 1024
_DIGEST_BYTES = 16


def input_name(files: InputFiles, packing: "Packing", run: int | None = None) -> str:
    """The name of these files with this packing, or of one run in them. Raises FeedError for a file that cannot be
    read.

    The number of passes does not count: a replay may continue with more of them. Paths do not count either.
    """
    digest = _digest_of(packing)
    if run is not None:
        digest.update(f"run {run} ".encode())
    for file in files.files:
        size = file.identity[2]
        digest.update(size.to_bytes(8, "little"))
        try:
            _add_content(digest, file.path, size)
        except OSError as error:
            raise FeedError(f"{file.path}: cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def name_of_sample(chain: str, seed: int, n_events: int, packing: "Packing") -> str:
    """The name of generated events."""
    digest = _digest_of(packing)
    digest.update(f"simulated {chain} {seed} {n_events}".encode())
    return digest.hexdigest()


def _digest_of(packing: "Packing") -> blake2b:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    # The number of a MEP stands for other events if any of these differs.
    digest.update(f"{packing.events_per_mep} {packing.max_fragment_bytes} {packing.with_truth} ".encode())
    return digest


def _add_content(digest: blake2b, path: Path, size: int) -> None:
    with path.open("rb") as file:
        if size <= _WHOLE_BYTES:
            while piece := file.read(1 << 20):
                digest.update(piece)
            return
        for i in range(_PIECES):
            file.seek((size - _PIECE_BYTES) * i // (_PIECES - 1))
            digest.update(file.read(_PIECE_BYTES))
