"""hltnode lines: the selection lines of a trigger configuration, and the unavailable ones."""

from typing import Annotated, Any

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
from hltnode.daemon.commands.terminal import echo
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain


def lines(
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    chain: ChainOption = DEFAULT_CHAIN,
    fields: Annotated[
        bool,
        typer.Option(
            "--fields", help="List the collections that lines may select, and their fields with units, instead."
        ),
    ] = False,
    json: JsonOption = None,
) -> None:
    """List the selection lines of a trigger configuration in the order of their bits, and the unavailable lines.

    Examples: hltnode lines --trigger trigger.toml --sequence forward_then_matching; hltnode lines --fields
    """
    with user_errors():
        require_writable(json, reads=(trigger,))
        installed = installed_chain(chain)
        if fields:
            inputs = fields_report(installed)
            write_json(json, {"inputs": inputs})
            print_fields(inputs)
            return
        configured = installed.load_trigger(trigger, sequence)
        report = lines_report(installed, configured)
        write_json(json, report)
    width = max(len(line["name"]) for line in report["lines"])
    for bit, line in enumerate(report["lines"]):
        scales = f"{line['prescale']:<8g}{line['postscale']:<8g}"
        prefilters = f" [{', '.join(line['prefilters'])}]" if "prefilters" in line else ""
        echo(f"{bit:5}  {line['name']:<{width}}  {scales}{line['input']:<20}{line['description']}{prefilters}")
    for name, prefilter in report["prefilters"].items():
        lines_text = f"{prefilter['lines']} line{'' if prefilter['lines'] == 1 else 's'}"
        echo(f"prefilter {name}: {prefilter['description']} ({lines_text})")
    for name, reason in report["not_available"].items():
        echo(f"not available: {name} {reason}")


def fields_report(chain: TriggerChain) -> dict[str, dict[str, Any]]:
    """The JSON object of `hltnode lines --fields`, by the name used in line files."""
    return {
        name: {
            "description": of.description,
            "fields": [{"name": field, "unit": unit, "description": text} for field, unit, text in of.describe()],
        }
        for name, of in chain.inputs.items()
    }


def print_fields(inputs: dict[str, dict[str, Any]]) -> None:
    """One line of text per field."""
    for name, of in inputs.items():
        echo(f"{name}: {of['description']}")
        width = max(len(field["name"]) for field in of["fields"])
        for field in of["fields"]:
            echo(f"    {field['name']:<{width}}  {field['unit']:<22}{field['description']}")


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
                **({"prefilters": [prefilter.name for prefilter in line.prefilters]} if line.prefilters else {}),
            }
            for line in trigger.lines
        ],
        "prefilters": {
            each.name: {
                "description": each.description,
                "lines": sum(each in line.prefilters for line in trigger.lines),
            }
            for each in dict.fromkeys((*trigger.prefilters, *chain.menu.prefilters))
        },
        "not_available": chain.not_available(trigger),
    }
