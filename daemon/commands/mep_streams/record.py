"""hltnode record: writes the input of a running node to Run-3 MEP files."""

import signal
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
import zmq

from hltnode.client.keys import ClientKeys, load_client_keys
from hltnode.daemon.commands.common import (
    JsonOption,
    KeyFileOption,
    ServerKeyOption,
    console,
    counted,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.mep_streams.handshake import Handshake
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common.endpoints import REACHABLE_SECONDS, NotReachableError, check_option
from hltnode.daemon.common.reachability import require_node
from hltnode.daemon.recorder.mep_assembly import MepAssembly
from hltnode.daemon.recorder.mep_files import MepFiles
from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.endpoints import is_ipv6

# After this time without data the recorder names the silent node, and repeatedly so.
SILENT_SECONDS = 5.0
POLL_MS = 200
# Messages that wait in this process; the buffer of the node holds further ones.
QUEUE = 256
_NO_TAP = "expected the tap of a node (tap.endpoint)"


def record(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the files run_RUN_NUMBER.mep.")],
    tap: Annotated[str, typer.Option("--from", metavar="ENDPOINT", help="Tap of the node (tap.endpoint).")],
    meps: Annotated[int | None, typer.Option("--meps", min=1, help="End after this number of MEPs.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0.1, help="End after this time.")] = None,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", min=1, help="End before the files exceed this size in total.")
    ] = 100 << 30,
    max_file_bytes: Annotated[int, typer.Option("--max-file-bytes", min=1, help="Largest size of one file.")] = 2 << 30,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for a node that is not running yet; otherwise only three seconds.")
    ] = False,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
    json: JsonOption = None,
) -> None:
    """Record the input of a running node, for bit-exact repetition with `hltnode replay`.

    The node does not wait for the recorder: MEPs are lost, and counted, if the recorder is too slow. Ctrl-C or SIGTERM
    ends the recording. The exit code is 1 if a MEP is missing in the middle of the recording, and 2 if no tap answers
    within three seconds (with --wait it may come later).

    Example: hltnode record incident --from tcp://127.0.0.1:5561 --seconds 60
    """
    with user_errors():
        require_writable(json)
        keys = load_client_keys(server_key, key_file)
        check_option("--from", tap)
        if not wait:
            require_node(zmq.SUB, [tap], keys)
        files = MepFiles(folder, max_file_bytes)
        assembly = MepAssembly()
        try:
            _record(tap, keys, assembly, files, meps, seconds, max_bytes, wait)
        finally:
            files.close()
        counts = assembly.counts
        write_json(json, {**asdict(counts), "files": [str(path) for path in files.finished]})
    echo(
        f"{counted(counts.meps, 'MEP')}, {counted(counts.events, 'event')}, {counted(counts.bytes, 'byte')} in "
        f"{counted(len(files.finished), 'file')}"
    )
    if counts.cut_meps:
        meps_cut = counted(counts.cut_meps, "MEP")
        echo(f"not recorded: {meps_cut} with missing fragments, or with fragments from before the start")
    if counts.damaged_meps:
        echo(f"not recorded: {counted(counts.damaged_meps, 'MEP')} whose fragments do not fit together")
    if counts.missed_messages:
        missed = counted(counts.missed_messages, "message")
        echo(f"not recorded: {missed} because this recorder was too slow")
        raise typer.Exit(1)


def _record(
    endpoint: str,
    keys: ClientKeys | None,
    assembly: MepAssembly,
    files: MepFiles,
    meps: int | None,
    seconds: float | None,
    max_bytes: int,
    wait: bool,
) -> None:
    is_over = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_over
        is_over = True

    before: dict[int, Any] = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    begin = heard = time.monotonic()
    # A tap identifies itself at once; another port of the node may accept the subscription and send nothing or other
    # data.
    is_tap = False
    with ExitStack() as stack:
        context = stack.enter_context(zmq.Context())
        socket = stack.enter_context(context.socket(zmq.SUB))
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IPV6, is_ipv6(endpoint))
        socket.setsockopt(zmq.RCVHWM, QUEUE)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        if keys is not None:
            keys.apply(socket)
        handshake = stack.enter_context(Handshake(socket, endpoint, has_keys=keys is not None))
        socket.connect(endpoint)
        console.print(f"recording from {endpoint}", markup=False, highlight=False)
        while not is_over and (seconds is None or time.monotonic() - begin < seconds):
            if not socket.poll(POLL_MS):
                handshake.check()
                if not is_tap and not wait and time.monotonic() - begin >= REACHABLE_SECONDS:
                    raise NotReachableError(f"{endpoint}: {_NO_TAP}")
                if time.monotonic() - heard >= SILENT_SECONDS:
                    console.print(f"no data from {endpoint} for {SILENT_SECONDS:.0f} s", highlight=False)
                    heard = time.monotonic()
                continue
            heard = time.monotonic()
            try:
                mep = assembly.take([part.buffer for part in socket.recv_multipart(copy=False)])
            except MessageError as error:
                raise ValueError(f"{endpoint}: {_NO_TAP}: {error}") from error
            is_tap = True
            if mep is None:
                continue
            if assembly.counts.bytes > max_bytes:
                console.print(f"recording ends: the files would exceed {max_bytes} bytes", highlight=False)
                assembly.counts.meps -= 1
                assembly.counts.events -= mep.n_events
                assembly.counts.bytes -= len(mep.content)
                break
            files.write(mep)
            is_over = is_over or assembly.counts.meps == meps
    assembly.end()
    for number, handler in before.items():
        signal.signal(number, handler)
