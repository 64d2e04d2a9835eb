"""`hltnode`, and `python -m hltnode.daemon`: Ctrl-C ends it without a traceback from its first moment on."""

import signal


def main() -> None:
    """The command line."""
    # The imports of the commands take a second; a KeyboardInterrupt in one of them is a page of frames.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hltnode.daemon.cli import app

    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


if __name__ == "__main__":
    main()
