"""Formats of event files, told apart by the whole header of the first record or packet."""

from enum import StrEnum, unique

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.raw_data.mdf import DATA_TYPE_BANKS, DATA_TYPE_MEP, GENERIC_HEADER, GENERIC_HEADER_SIZE
from hltnode.protocol.raw_data.mep import MAGIC as MEP_MAGIC

# Magic of gzip, and deflate, its only method.
_GZIP_START = b"\x1f\x8b\x08"


@unique
class FileFormat(StrEnum):
    """The format of an event file."""

    MDF = "MDF"
    MEP = "Run-3 MEP"
    MEP_2019 = "2019 MEP"
    GZIP = "gzip"


def format_of(head: Buffer) -> FileFormat | None:
    """The format of a file that begins with these bytes, 20 or more; None for fewer bytes or another format.

    Three equal sizes and a known data type make an MDF header, whatever its first bytes: the size of one compressed
    record in 65,536 begins with the magic of a MEP, of another one with that of gzip. A header without equal sizes
    belongs to the format of its magic, or of its data type.
    """
    if len(head) < GENERIC_HEADER_SIZE:
        return FileFormat.GZIP if bytes(head[: len(_GZIP_START)]) == _GZIP_START else None
    size, second, third, _, _, _, data_type, _ = GENERIC_HEADER.unpack_from(head)
    of_type = {DATA_TYPE_BANKS: FileFormat.MDF, DATA_TYPE_MEP: FileFormat.MEP_2019}.get(data_type)
    if of_type is not None and size == second == third:
        return of_type
    if bytes(head[: len(_GZIP_START)]) == _GZIP_START:
        return FileFormat.GZIP
    return FileFormat.MEP if int.from_bytes(head[:2], "little") == MEP_MAGIC else of_type
