"""`python -m hltnode.daemon` is `hltnode`."""

import signal


def main() -> None:
    """Run the command line. Ctrl-C while it is being imported ends the process without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hltnode.daemon.cli import app

    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


if __name__ == "__main__":
    main()
