"""Receive the decisions of a node and print the accepted events of each selection line, MEP by MEP.

python examples/decisions.py tcp://127.0.0.1:5557 --trigger examples/trigger.toml --meps 6

docs/formats/decision-message.md describes the bytes of a decision message.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import zmq
from numpy.typing import NDArray

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.protocol.transport.decisions import MepDecision, decode_decisions


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print the accepted events of each selection line.")
    parser.add_argument("endpoint", help="decision endpoint of the node, such as tcp://127.0.0.1:5557")
    parser.add_argument("--trigger", type=Path, required=True, help="trigger configuration of the node")
    parser.add_argument("--meps", type=int, required=True, help="number of MEPs to receive")
    options = parser.parse_args(arguments)

    trigger = CHAIN.load_trigger(options.trigger)
    tck = CHAIN.document(trigger).tck
    next_message: int | None = None
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.set(zmq.LINGER, 0)
        socket.subscribe(b"")
        socket.connect(options.endpoint)
        print(f"waiting for decisions of {options.endpoint}", flush=True)
        for decision in received(socket, options.meps):
            if decision.tck != tck:
                raise SystemExit(f"{decision.node} runs TCK 0x{decision.tck:08X}, {options.trigger} is 0x{tck:08X}")
            if next_message is not None and decision.seq > next_message:
                print(f"{decision.seq - next_message} messages missed")
            next_message = decision.seq + 1
            fired = decisions_of_lines(decision)
            print(f"run {decision.run} MEP {decision.mep}: {decision.n_events} events, {decision.close_reason}")
            for name, of_line in zip(trigger.line_names, fired.T, strict=True):
                events = decision.first_event + np.flatnonzero(of_line)
                print(f"  {name}: {' '.join(map(str, events)) or 'none'}")


def received(socket: zmq.Socket[bytes], n: int) -> Iterator[MepDecision]:
    """The next n decisions; a message has one or, with decisions.meps_per_message of the node, several."""
    while n > 0:
        for decision in decode_decisions(socket.recv())[:n]:
            yield decision
            n -= 1


def decisions_of_lines(decision: MepDecision) -> NDArray[np.uint8]:
    """The decision of each line on each event: u8[events, lines], 0 or 1."""
    words = np.frombuffer(decision.lines, dtype="<u4").reshape(decision.n_events, -1)
    return np.unpackbits(words.view(np.uint8), axis=1, count=decision.n_lines, bitorder="little")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
