"""hltnode serve: the node."""

from pathlib import Path
from typing import Annotated

import typer

from hltnode.daemon.commands.common import JsonOption


def serve(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="Configuration of the node (TOML).")],
    json: JsonOption = None,
) -> None:
    """Run a node until SIGTERM or SIGINT.

    The first signal drains the node; a second one stops it within three seconds. SIGHUP reloads the configuration.

    The JSON result is the last status.

    Example: hltnode serve --config node.toml
    """
    # The node takes a second to import, and `--help` does not need it.
    from hltnode.daemon.commands.node.serving import run_process

    run_process(config, json)
