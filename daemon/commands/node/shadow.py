"""hltnode shadow: compares the decisions of a shadow node with those of the productive node."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
import zmq

from hltnode.client import DecisionSubscriber
from hltnode.client.keys import load_client_keys
from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    JsonOption,
    KeyFileOption,
    ServerKeyOption,
    counted,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.node.shadow_comparison import Comparison, DecisionPairs, as_json
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common.endpoints import check_option
from hltnode.daemon.common.reachability import require_node

POLL_S = 0.2


def shadow(
    productive: Annotated[str, typer.Argument(metavar="PRODUCTIVE", help="Decision endpoint of the productive node.")],
    of_shadow: Annotated[str, typer.Argument(metavar="SHADOW", help="Decision endpoint of the shadow node.")],
    meps: Annotated[int | None, typer.Option("--meps", min=1, help="End after this number of compared MEPs.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="End after this time.")] = 60.0,
    tck: Annotated[
        list[Path] | None,
        typer.Option(
            "--tck",
            metavar="FILE",
            help="Document of a trigger configuration with the names of lines, or output folder of a node; repeatable.",
        ),
    ] = None,
    chain: ChainOption = DEFAULT_CHAIN,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
    json: JsonOption = None,
) -> None:
    """Compare the decisions of a shadow node with those of the productive node, line by line.

    Lines of the same name are compared. Their names come from the built-in configurations of --chain, or from the
    documents (0x1234ABCD.json) that nodes write into their output folders: give both folders, or both documents, by
    --tck. If a configuration is unknown, line i of the one node is compared with line i of the other.

    MEPs that the shadow did not get are not compared, and counted. The exit code is 0 also if decisions differ.

    Example: hltnode shadow tcp://127.0.0.1:5557 tcp://127.0.0.1:5567 --tck output --tck shadow
    """
    with user_errors():
        require_writable(json, reads=tuple(tck or ()))
        names = NamesOfLines(tck or (), chain)
        keys = load_client_keys(server_key, key_file)
        for option, endpoint in (("PRODUCTIVE", productive), ("SHADOW", of_shadow)):
            check_option(option, endpoint)
        require_node(zmq.SUB, [productive, of_shadow], keys)
        pairs = DecisionPairs(names)
        with (
            DecisionSubscriber(productive, keys=keys) as first,
            DecisionSubscriber(of_shadow, keys=keys, shadow=True) as second,
        ):
            end = time.monotonic() + seconds
            subscribers = ((first, False), (second, True))
            while time.monotonic() < end and (meps is None or pairs.comparison.meps < meps):
                if not _take_waiting(pairs, subscribers):
                    time.sleep(POLL_S / 10)
            missed = first.missed, second.missed
        found = pairs.end()
        write_json(json, {**as_json(found), "missed_messages": list(missed)})
    _print(found)


def _take_waiting(pairs: DecisionPairs, subscribers: tuple[tuple[DecisionSubscriber, bool], ...]) -> bool:
    """Take the waiting decisions of each node, at most some hundred; False if there were none."""
    took = False
    for subscriber, is_shadow in subscribers:
        for _ in range(500):
            try:
                decision = subscriber.receive(0.0)
            except TimeoutError:
                break
            pairs.take(decision, is_shadow=is_shadow)
            took = True
    return took


class NamesOfLines:
    """Names of the lines of a TCK, from documents, folders with documents, and built-in configurations."""

    def __init__(self, given: Sequence[Path], chain: str) -> None:
        # Local import: `hltnode --help` imports this module, and does not need the selection.
        from hltnode.processing.selection.configuration.tck import TckDocument

        self._folders = [path for path in given if path.is_dir()]
        self._known: dict[int, tuple[str, ...] | None] = {}
        for path in given:
            if not path.is_dir():
                document = TckDocument.load(path)
                self._known[document.tck] = document.line_names
        self._chain = chain

    def __call__(self, tck: int) -> tuple[str, ...] | None:
        if tck not in self._known:
            self._known[tck] = self._find(tck)
        return self._known[tck]

    def _find(self, tck: int) -> tuple[str, ...] | None:
        from hltnode.processing.selection.studies.tck_documents import built_in_documents, document_beside
        from hltnode.processing.selection.trigger_chain import installed_chain

        for folder in self._folders:
            # The document lies beside the event files of the folder.
            if (document := document_beside(folder / "events", tck)) is not None:
                return document.line_names
        for document in built_in_documents(installed_chain(self._chain)):
            if document.tck == tck:
                return document.line_names
        return None


def _print(found: Comparison) -> None:
    echo(f"{counted(found.meps, 'MEP')}, {counted(found.events, 'event')}: {found.differing_events} differ")
    rows = [("accepted", found.accepted), *found.lines.items()]
    for name, line in rows:
        if line.both or line.only_productive or line.only_shadow:
            echo(f"  {name}: {line.both} both, {line.only_productive} only productive, {line.only_shadow} only shadow")
    if found.by_number:
        echo("lines are compared by their numbers: give the TCK documents of both nodes by --tck")
    for node, names in (("productive node", found.only_productive), ("shadow", found.only_shadow)):
        if names:
            echo(f"only the {node} has {', '.join(names)}")
    if any(found.unmatched):
        echo(f"not compared: {found.unmatched[0]} MEPs of the productive node, {found.unmatched[1]} of the shadow")
