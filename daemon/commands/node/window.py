"""hltnode window: asks a combiner to keep all hits of a time."""

import secrets
from typing import Annotated

import typer
import zmq

from hltnode.client.keys import ClientKeys, load_client_keys
from hltnode.daemon.commands.common import KeyFileOption, ServerKeyOption, console, user_errors
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common.endpoints import NotReachableError, check_option
from hltnode.daemon.common.zmq_sockets import BOUND
from hltnode.protocol.transport.endpoints import is_ipv6
from hltnode.protocol.transport.seed_messages import (
    MAX_RUN_NS,
    MAX_SEED_MESSAGE,
    Keep,
    KeepReply,
    NotJoined,
    decode_from_combiner,
    encode_to_combiner,
)


def window(
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="Socket of the combiner.")],
    start: Annotated[int, typer.Argument(metavar="START", min=0, max=MAX_RUN_NS, help="First ns since the run began.")],
    end: Annotated[int, typer.Argument(metavar="END", min=1, max=MAX_RUN_NS, help="ns behind the last one.")],
    run: Annotated[
        int, typer.Option("--run", min=0, max=0xFFFFFFFF, help="The run; 0: the one that the combiner heard of last.")
    ] = 0,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=3600, help="Seconds to wait for the answer.")
    ] = 5.0,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
) -> None:
    """Ask a combiner to keep all hits of a time; exit code 1 if it refuses.

    All nodes keep what they still hold of it (combiner.hold_ms) and what is still to come.

    Example: hltnode window tcp://127.0.0.1:5571 60000000000 70000000000 --run 7
    """
    with user_errors():
        if start >= end:
            raise ValueError(f"START {start}: expected below END, which is {end}")
        reply = _ask(check_option("ENDPOINT", endpoint), Keep(secrets.randbits(32), run, start, end), timeout,
                     load_client_keys(server_key, key_file))  # fmt: skip
    if not reply.ok:
        console.print(f"refused: {reply.text}", markup=False, highlight=False)
        raise typer.Exit(1)
    echo(f"run {reply.run}, {start} to {end} ns: {reply.text}")


def _ask(endpoint: str, message: Keep, timeout: float, keys: ClientKeys | None) -> KeepReply:
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        options = {**BOUND, zmq.LINGER: 0, zmq.MAXMSGSIZE: MAX_SEED_MESSAGE, zmq.IPV6: is_ipv6(endpoint)}
        for option, value in options.items():
            socket.setsockopt(option, value)
        if keys is not None:
            keys.apply(socket)
        socket.connect(endpoint)
        socket.send(encode_to_combiner(message))
        if not socket.poll(int(timeout * 1000)):
            raise NotReachableError(f"{endpoint}: no answer of a combiner in {timeout:g} s")
        answer = decode_from_combiner(socket.recv())
    if isinstance(answer, NotJoined):
        raise NotReachableError(f"{endpoint}: {answer.text}")
    if not isinstance(answer, KeepReply) or answer.request != message.request:
        raise NotReachableError(f"{endpoint}: not an answer to this request")
    return answer
