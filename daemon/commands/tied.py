"""Runs a program that ends with its parent: python -m hltnode.daemon.commands.tied PARENT PROGRAM ...

The kernel sends SIGKILL to the program when the thread that started it ends, also after a SIGKILL. A process that
starts programs with this module must start them in its main thread.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C before the program has started ends it without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

MODULE = "hltnode.daemon.commands.tied"
PR_SET_PDEATHSIG = 1
"""Request of prctl(2): the signal that a process gets when its parent ends. It outlives execve."""


def tied(command: Sequence[str]) -> list[str]:
    """The command line of a program that ends with this process."""
    return [sys.executable, "-P", "-m", MODULE, str(os.getpid()), *command]


def main(arguments: list[str]) -> None:
    """Become the program. Raises OSError if it cannot be run."""
    parent, program = int(arguments[0]), arguments[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # The parent may have ended before the request: no signal comes then.
    if os.getppid() == parent:
        os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
