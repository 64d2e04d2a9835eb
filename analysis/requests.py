"""Asks a running node what it would decide on the events of files."""

from collections.abc import Iterator
from itertools import islice

from hltnode.analysis.paths import Paths, paths_of
from hltnode.client.keys import ClientKeys
from hltnode.client.plain import Requester
from hltnode.processing.framework.event_files import read_all_tables
from hltnode.processing.framework.offline_runner import encode_meps
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.selection.trigger_chain import installed_chain
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.transport.requests import Answer

ON_THEIR_WAY = 4
"""Requests that wait for their answers at a time: the node computes one while others travel."""


def ask(
    files: Paths,
    node: str,
    *,
    chain: str = "lhcb",
    encoding: str = AUTO,
    events_per_request: int = 64,
    timeout: float = 30.0,
    keys: ClientKeys | None = None,
) -> Iterator[Answer]:
    """The answers of a node to the events of files, in their order; each has the events of one request.

    Args:
        files: MDF or MEP files, or one.
        node: its request socket (`requests.endpoint`), such as "tcp://127.0.0.1:5562".
        chain: name of the installed chain that reads the files; the node must run it too.
        encoding: banks to send if events hold the same hits twice.
        events_per_request: at most `requests.max_events` of the node. A request has fewer at the end, and for banks of
            several versions.
        timeout: seconds to wait for an answer.
        keys: for a node with keys (`hltnode.client.load_client_keys`).

    Raises ValueError for unknown names and for a node of another chain, EventFileError for event files, TimeoutError
    without an answer, hltnode.client.RequestRefusedError for a request that the node refuses.
    """
    reading = installed_chain(chain)
    check_encoding(reading.readout, encoding)
    meps = encode_meps(reading, read_all_tables(paths_of(files)), events_per_request, encoding)
    requests = (
        encode_mep([mep.data[begin : begin + size].tobytes() for _, begin, size in mep.fragments], align=3)
        for mep in meps
    )
    with Requester(node, keys=keys) as requester:
        sent = [requester.send(mep) for mep in islice(requests, ON_THEIR_WAY)]
        came: dict[int, Answer] = {}
        while sent:
            while sent[0] not in came:
                answer = requester.receive(timeout)
                if answer.chain != chain:
                    raise ValueError(f"{node}: the node runs chain {answer.chain!r}, not {chain!r}")
                came[answer.id] = answer
            yield came.pop(sent.pop(0))
            sent += [requester.send(mep) for mep in islice(requests, 1)]
