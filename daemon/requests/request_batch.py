"""Requests of several clients as one batch, and an answer to each from its rows."""

from collections.abc import Sequence

import numpy as np

from hltnode.daemon.compute.engine_interface import Engine, Output, Workspace
from hltnode.daemon.output.decision_lists import DecisionLists
from hltnode.daemon.requests.request_queue import WaitingRequest
from hltnode.processing.framework.batch import MepInBatch
from hltnode.protocol.transport.messages import as_remark
from hltnode.protocol.transport.requests import (
    Answer,
    Refusal,
    RequestRefusal,
    encode_answer,
    pack_answer,
)


def fill(workspace: Workspace, requests: Sequence[WaitingRequest]) -> None:
    """Copy the MEPs of some requests into a workspace, and seal it."""
    meps: list[MepInBatch] = []
    offset = 0
    for request in requests:
        size = len(request.mep)
        workspace.input_data[offset : offset + size] = np.frombuffer(request.mep, np.uint8)
        places = request.places if not offset else request.places + np.array([0, offset, 0])
        meps.append(MepInBatch(request.n_events, places))
        offset += request.room
    workspace.seal(meps)


class AnswerEncoder:
    """Encodes answers. node: the name of the node; chain: that of its chain. max_list_bytes: of the lists of one."""

    def __init__(self, engine: Engine, *, node: str, chain: str, max_list_bytes: int) -> None:
        self._engine = engine
        self._node = node
        self._chain = chain
        self._lists = DecisionLists([each.description for each in engine.lists.values()], max_list_bytes)

    def encode(self, request: WaitingRequest, output: Output, rows: slice) -> bytes:
        """The message to the client of a request, by the rows of its events."""
        engine = self._engine
        n, n_lines = request.n_events, len(engine.lines)
        parts = {name: output.lists[name].part(rows.start, rows.stop) for name in engine.lists}
        lists, _ = self._lists.encode(parts, n, n_lines)
        counts = np.zeros((n, len(engine.collections)), "<u4")
        for column, of_collection in enumerate(output.counts.values()):
            counts[:, column] = of_collection[rows]
        return pack_answer(
            Answer(
                id=request.id,
                node=self._node,
                chain=self._chain,
                tck=engine.tck,
                n_events=n,
                n_lines=n_lines,
                accepted=np.packbits(output.accepted[rows] != 0, bitorder="little").tobytes(),
                lines=output.lines[rows].astype("<u4", copy=False).tobytes(),
                flags=output.flags[rows].astype("<u4", copy=False).tobytes(),
                collections=engine.collections,
                counts=counts.tobytes(),
                lists=lists,
            )
        )


def refusal(number: int, reason: RequestRefusal, text: str) -> bytes:
    """The message that refuses the request of this id."""
    return encode_answer(Refusal(number, reason, as_remark(text)))
