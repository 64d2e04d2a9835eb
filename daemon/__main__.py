"""`python -m hltnode.daemon` is `hltnode`."""

# Until a handler is set, Ctrl-C during the start of Python ends in a traceback. So this comes before all other imports:
# the module of the handlers takes longer to import. A process that ignores the signal (nohup) ignores it until then.
import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import gc
import sys

from hltnode import __version__
from hltnode.daemon.common.ending import end_at_once, run_to_its_end, take_signals


def main() -> None:
    """Run the command line."""
    take_signals(end_at_once)
    if sys.argv[1:] == ["--version"]:
        # Scripts and packages ask for it; the command line costs four times as much as the rest of this process.
        run_to_its_end(lambda: print(f"hltnode {__version__}"))
    # What imports make lives until the end. Collections among it would cost a tenth of the start, and of every command
    # that makes many objects, such as banks, a third: so it is left out of them.
    gc.disable()
    from typer.main import get_command

    from hltnode.daemon.cli import app, import_module_of

    command = get_command(app)
    for name in sys.argv[1:2]:
        import_module_of(name)
    gc.freeze()
    gc.enable()
    run_to_its_end(lambda: command(prog_name="hltnode"))


if __name__ == "__main__":
    main()
