"""`python -m hltnode.daemon` is `hltnode`."""

import sys

from hltnode.daemon.common.ending import end_at_once, run_to_its_end, take_signals


def main() -> None:
    """Run the command line."""
    take_signals(end_at_once)
    from typer.main import get_command

    from hltnode.daemon.cli import app, import_command

    command = get_command(app)
    for name in sys.argv[1:2]:
        import_command(name)
    run_to_its_end(lambda: command(prog_name="hltnode"))


if __name__ == "__main__":
    main()
