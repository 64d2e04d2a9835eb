"""A command with a chain from a folder: python -m tests.daemon.processes.command_of_chain DIR ARGUMENTS."""

import sys

from hltnode.daemon.cli import app

if __name__ == "__main__":
    directory, *arguments = sys.argv[1:]
    sys.path.insert(0, directory)
    app(arguments)
