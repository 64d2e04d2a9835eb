"""hltnode lines: the selection lines that a trigger configuration runs, and those that it cannot."""

from typing import Any

import typer

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    JsonOption,
    SequenceOption,
    TriggerOption,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain
from hltnode.processing.selection.trigger_config import TriggerConfig


def lines(
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    chain: ChainOption = DEFAULT_CHAIN,
    json: JsonOption = None,
) -> None:
    """List the selection lines of a trigger configuration, in the order of their bits, and those not available.

    Example: hltnode lines --trigger trigger.toml --sequence forward_then_matching
    """
    with user_errors():
        require_writable(json)
        installed = installed_chain(chain)
        configured = installed.load_trigger(trigger, sequence)
        report = lines_report(installed, configured)
        write_json(json, report)
    width = max(len(line["name"]) for line in report["lines"])
    for bit, line in enumerate(report["lines"]):
        scales = f"{line['prescale']:<8g}{line['postscale']:<8g}"
        typer.echo(f"{bit:5}  {line['name']:<{width}}  {scales}{line['input']:<20}{line['description']}")
    for name, reason in report["not_available"].items():
        typer.echo(f"not available: {name} {reason}")


def lines_report(chain: TriggerChain, trigger: TriggerConfig) -> dict[str, Any]:
    """The JSON object of `hltnode lines`."""
    return {
        "tck": trigger.tck(chain.with_sequence(trigger.sequence).sequence),
        "lines": [
            {
                "name": line.name,
                "input": line.input.name,
                "prescale": line.prescale,
                "postscale": line.postscale,
                "description": line.description,
            }
            for line in trigger.lines
        ],
        "not_available": chain.not_available(trigger),
    }
