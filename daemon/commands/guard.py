"""Makes a temporary folder, prints its path, and removes it when the standard input ends.

The process that starts it holds the other end of the pipe, so the folder goes even if that process is killed. It makes
the folder itself: there is no moment with a folder and without a guard.
"""

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

MODULE = "hltnode.daemon.commands.guard"
REMOVE_SECONDS = 60.0
"""Programs that write into the folder are killed at the same time; some ms later it can be removed."""


def main(prefix: str) -> None:
    """Guard a folder until the standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    # A parent that is killed in this moment reads nothing: the folder must go all the same.
    with contextlib.suppress(BrokenPipeError):
        print(folder, flush=True)
    sys.stdin.read()
    end = time.monotonic() + REMOVE_SECONDS
    while folder.exists() and time.monotonic() < end:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)


@contextlib.contextmanager
def guarded_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder that is removed at the end, also if this process is killed. Raises OSError.

    prefix: begin of its name.
    """
    guard = subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE, prefix],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C on the terminal is for this process.
        start_new_session=True,
    )
    with guard:
        assert guard.stdout is not None
        path = guard.stdout.readline().decode().rstrip("\n")
        if not path:
            raise OSError(f"the guard of the temporary folder ended with exit code {guard.wait()}")
        yield Path(path)


if __name__ == "__main__":
    main(sys.argv[1])
