"""A signal ends a command also when Python wraps its exception in another one."""

import signal
import subprocess
import sys

import pytest

BODY = """
import os
from hltnode.daemon.common.ending import run_to_its_end

class Descriptor:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), {number})

def wrapped():
    # Python 3.11 makes a RuntimeError of an exception in __set_name__; later versions do not.
    try:
        type("Owner", (), {{"of_class": Descriptor()}})
    except BaseException as error:
        raise ValueError("some library") from error

def cleaned_up():
    try:
        os.kill(os.getpid(), {number})
    finally:
        raise ValueError("the clean-up failed")

def not_by_a_signal():
    raise ValueError("no signal") from KeyboardInterrupt()

run_to_its_end({command})
"""


def ended(command: str, number: int) -> tuple[int, str]:
    """Exit code and standard error of a process with this command."""
    line = [sys.executable, "-c", BODY.format(command=command, number=number)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted\n"), (signal.SIGTERM, "terminated\n")])
def test_an_exception_that_wraps_that_of_a_signal_is_the_end_by_the_signal(number: int, word: str) -> None:
    assert ended("wrapped", number) == (128 + number, word)


@pytest.mark.parametrize(("command", "text"), [("cleaned_up", "the clean-up failed"), ("not_by_a_signal", "no signal")])
def test_other_errors_are_shown(command: str, text: str) -> None:
    code, errors = ended(command, signal.SIGINT)
    assert code == 1
    assert f"ValueError: {text}" in errors
