"""hltnode doctor: checks whether this machine is ready for a node, with advice for each problem."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from hltnode.daemon.commands.common import JsonOption, require_files, require_writable, user_errors, write_json
from hltnode.daemon.commands.node.findings import Finding, Level, configuration_problems, examine
from hltnode.daemon.commands.text_console import results_console
from hltnode.daemon.configuration.loading import ConfigError, keys_in, load_config
from hltnode.daemon.configuration.model import NodeConfig

_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


def doctor(
    file: Annotated[
        Path | None, typer.Argument(metavar="CONFIG", help="Configuration of the node; default values if not given.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Check this machine: GPU, limits, ports, clock, disk, configuration; each problem comes with advice.

    The exit code is 1 if a problem keeps a node from starting, 2 if CONFIG does not exist, and 0 otherwise, also with
    warnings. Run it as the user of the node and before the node starts: the ports of a running node are in use.

    Example: hltnode doctor node.toml
    """
    with user_errors():
        require_files(file)
        require_writable(json, reads=[file])
        findings = list(_findings(file))
        verdict = max((finding.level for finding in findings), key=list(Level).index)
        write_json(json, {"verdict": str(verdict), "findings": [asdict(finding) for finding in findings]})
    out = results_console(highlight=False)
    for finding in findings:
        colour = _COLOURS[finding.level]
        mend = f"\n          -> {escape(finding.mend)}" if finding.mend else ""
        out.print(
            f"[{colour}]{finding.level:8}[/{colour}]  {finding.what}: {escape(finding.found)}{mend}", soft_wrap=True
        )
    raise typer.Exit(1 if verdict is Level.PROBLEM else 0)


def _findings(file: Path | None) -> list[Finding]:
    problems = configuration_problems(file)
    found = [Finding("configuration", Level.PROBLEM, line, _explained(line)) for line in problems]
    if not found and file is not None:
        found = [Finding("configuration", Level.OK, f"{file} is valid")]
    try:
        config = load_config(file)
    except ConfigError:
        # Check the machine nevertheless, for a node with default values.
        config = NodeConfig.model_construct()
    return [*found, *examine(config)]


def _explained(problem: str) -> str:
    keys = dict.fromkeys(keys_in(problem))
    return " and ".join(f"hltnode config explain {key}" for key in keys) or "hltnode config --defaults lists all keys"
