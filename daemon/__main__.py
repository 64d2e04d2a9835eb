"""`python -m hltnode.daemon` is `hltnode`."""

import signal
import sys


def main() -> None:
    """Run the command line. Ctrl-C while it is being imported and made ends the process without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from typer.main import get_command

    from hltnode.daemon.cli import app, import_command

    command = get_command(app)
    for name in sys.argv[1:2]:
        import_command(name)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        command()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
