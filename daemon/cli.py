"""The command line: `hltnode COMMAND --help` explains each command with an example."""

import typer

from hltnode.daemon.commands import keys, tck
from hltnode.daemon.commands.compare import compare
from hltnode.daemon.commands.ctl import ctl
from hltnode.daemon.commands.demo import demo
from hltnode.daemon.commands.efficiency import efficiency
from hltnode.daemon.commands.histograms import histograms
from hltnode.daemon.commands.inspect import inspect
from hltnode.daemon.commands.lines import lines
from hltnode.daemon.commands.parametrise import parametrise
from hltnode.daemon.commands.process import process
from hltnode.daemon.commands.rates import rates
from hltnode.daemon.commands.record import record
from hltnode.daemon.commands.replay import replay
from hltnode.daemon.commands.replay_check import replay_check
from hltnode.daemon.commands.serve import serve
from hltnode.daemon.commands.simulate import simulate
from hltnode.daemon.commands.validate import validate

app = typer.Typer(
    help="The software of one trigger farm node.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (
    *(serve, ctl, replay, record, process, replay_check, validate, compare, rates, efficiency),
    *(simulate, parametrise, inspect, lines, histograms, demo),
):
    app.command()(command)
app.add_typer(keys.app, name="keys")
app.add_typer(tck.app, name="tck")
