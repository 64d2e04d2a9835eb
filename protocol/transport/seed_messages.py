"""Messages of a combiner (ROUTER) with its nodes and with operators (DEALER), in msgpack.

Nodes of a streaming chain send their seeds, which are candidate windows, for each time slice. The combiner joins the
seeds of all nodes and answers with the windows of the slice. Operators ask it to keep a time.

A seed or window is a row of bytes: SEED, and then the other values of the list of windows of the chain, packed in the
order of its description. The combiner does not read these.

Format: docs/formats/seed-messages.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.messages import U32, U64, Message, MessageCodec, Name, Remark
from hltnode.protocol.value_lists import read_description

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEED_VERSION = 1
MAX_SEED_MESSAGE = 2 << 20
MAX_SEED_BYTES = 1 << 20
"""Most bytes of the rows of a message. More seeds than these are sent as one window of the whole slice."""
MAX_DESCRIPTION = 8 << 10
MAX_RUN_NS = (1 << 62) - 1
"""Times since the start of a run fit 62 bits, 146 years: a distance or a margin more fits the 64 bits of a seed."""
SEED_FIELDS = [("start_ns", "<i8"), ("end_ns", "<i8"), ("lines", "<u4"), ("sub_slice", "<u4")]
"""Start and end in ns since the start of the run, the end excluded; bits of lines; number of the sub-slice in its
slice, margins included, to which the seed belongs."""
SEED_SIZE = 24


class Join(Message, frozen=True):
    """Node to combiner, at its start and every second: who it is. `session` differs after each start of the node.

    `run`, `held_from_ns`: the latest run that it takes slices of, and the start of the oldest one that it holds. If it
    holds none, the end of the latest one. `run` 0: it has taken none.
    """

    node: Name
    session: Name
    chain: Name
    run: U32 = 0
    held_from_ns: U64 = 0


class SliceSeeds(Message, frozen=True):
    """Node to combiner: all seeds of a slice; also a slice without seeds is reported.

    `core_ns`: length of a slice without its margins, so slice n begins at n * core_ns. `before_ns`, `behind_ns`:
    margins. `description`: of the list of windows (docs/formats/list-banks.md), without start, end and lines; empty for
    a list of nothing else. `seeds`: rows. `whole`: the seeds did not fit, and the only row is the whole slice.
    """

    run: U32
    slice: U64
    core_ns: U64
    before_ns: U64
    behind_ns: U64
    description: bytes
    seeds: bytes
    whole: bool = False

    def check(self) -> None:
        if not self.core_ns > 0 or (self.slice + 1) * self.core_ns + self.behind_ns + self.before_ns >= MAX_RUN_NS:
            raise ValueError("times of 62 bits expected - at `$.core_ns`")
        rows = _check_rows(self.description, self.seeds)
        begin = self.slice * self.core_ns
        starts, ends = rows["start_ns"], rows["end_ns"]
        if (starts >= ends).any():
            raise ValueError("a seed ends before it begins, or where it begins - at `$.seeds`")
        # One ns more: the record of a window that was cut there says that it is cut off.
        low, high = begin - self.before_ns - 1, begin + self.core_ns + self.behind_ns + 1
        if (starts < low).any() or (ends > high).any():
            raise ValueError(f"a seed outside of {low} to {high} ns, the slice with its margins - at `$.seeds`")


class SliceWindows(Message, frozen=True):
    """Combiner to node: the windows of a slice, of all nodes. `complete`: all nodes were heard."""

    run: U32
    slice: U64
    complete: bool
    description: bytes
    windows: bytes

    def check(self) -> None:
        rows = _check_rows(self.description, self.windows)
        starts, ends = rows["start_ns"], rows["end_ns"]
        if (starts >= ends).any() or (starts < -MAX_RUN_NS).any() or (ends > MAX_RUN_NS).any():
            raise ValueError("a window that ends before it begins, or times of more than 62 bits - at `$.windows`")


class Joined(Message, frozen=True):
    """Combiner to node, the answer to each `join`. `session` differs after each start of the combiner."""

    session: Name


class NotJoined(Message, frozen=True):
    """Combiner to node: a message is refused, with the reason for people."""

    text: Remark


class Keep(Message, frozen=True):
    """Operator to combiner: keep all hits from start to end, in ns since the start of the run.

    `run` 0: the run that the combiner heard of last. `request` is repeated in the answer.
    """

    request: U32
    run: U32
    start_ns: U64
    end_ns: U64

    def check(self) -> None:
        if not self.start_ns < self.end_ns <= MAX_RUN_NS:
            raise ValueError(f"start < end <= {MAX_RUN_NS} expected - at `$.end_ns`")


class KeepReply(Message, frozen=True):
    """Combiner to operator: whether the time is kept, and in which run."""

    request: U32
    ok: bool
    run: U32
    text: Remark


class ExternalWindow(Message, frozen=True):
    """Combiner to node: keep all hits of this time that are still held or still to come."""

    run: U32
    start_ns: U64
    end_ns: U64

    def check(self) -> None:
        if not self.start_ns < self.end_ns <= MAX_RUN_NS:
            raise ValueError(f"start < end <= {MAX_RUN_NS} expected - at `$.end_ns`")


ToCombiner: TypeAlias = Join | SliceSeeds | Keep
FromCombiner: TypeAlias = Joined | NotJoined | SliceWindows | KeepReply | ExternalWindow

_TO_COMBINER: MessageCodec[ToCombiner] = MessageCodec(
    *get_args(ToCombiner), what="seed message", version=SEED_VERSION, max_size=MAX_SEED_MESSAGE, max_containers=1
)
_FROM_COMBINER: MessageCodec[FromCombiner] = MessageCodec(
    *get_args(FromCombiner), what="window message", version=SEED_VERSION, max_size=MAX_SEED_MESSAGE, max_containers=1
)


@lru_cache(maxsize=64)
def row_type(description: bytes) -> np.dtype[Any]:
    """The type of a row: SEED_FIELDS, and `columns`, the bytes of the other values. Raises ValueError."""
    import numpy as np  # a feeder needs no NumPy

    if len(description) > MAX_DESCRIPTION:
        raise ValueError(f"a description of {len(description)} bytes")
    size = 0
    if description:
        of, at = read_description(memoryview(description))
        if at != len(description):
            raise ValueError(f"a description of {at} bytes in {len(description)}")
        size = sum(int(kind[1:]) for kind in of.values.values())
    fields: list[Any] = [*SEED_FIELDS]
    if size:
        fields.append(("columns", "u1", (size,)))
    return np.dtype(fields)


def rows_of(description: bytes, raw: bytes) -> NDArray[np.void]:
    """The rows of a message. Raises ValueError for bytes that are no whole rows, or too many."""
    import numpy as np  # a feeder needs no NumPy

    dtype = row_type(description)
    if len(raw) > MAX_SEED_BYTES or len(raw) % dtype.itemsize:
        raise ValueError(f"{len(raw)} bytes of rows of {dtype.itemsize}, at most {MAX_SEED_BYTES}")
    return np.frombuffer(raw, dtype)


def _check_rows(description: bytes, raw: bytes) -> NDArray[np.void]:
    try:
        return rows_of(description, raw)
    except ValueError as error:
        raise ValueError(f"{error} - at `$.description` and its rows") from error


def encode_to_combiner(message: ToCombiner) -> bytes:
    """The message as msgpack. Raises MessageError for one that decode_to_combiner would refuse."""
    return _TO_COMBINER.encode(message)


def decode_to_combiner(raw: Buffer) -> ToCombiner:
    """The message of a node or an operator. Raises MessageError for anything else."""
    return _TO_COMBINER.decode(raw)


def encode_from_combiner(message: FromCombiner) -> bytes:
    """The message as msgpack. Raises MessageError for one that decode_from_combiner would refuse."""
    return _FROM_COMBINER.encode(message)


def decode_from_combiner(raw: Buffer) -> FromCombiner:
    """The message of a combiner. Raises MessageError for anything else."""
    return _FROM_COMBINER.decode(raw)
