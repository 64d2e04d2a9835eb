"""`python -m hltnode.daemon` is `hltnode`."""

from hltnode.daemon.cli import app

app()
