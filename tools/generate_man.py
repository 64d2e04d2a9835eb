"""Write the manual page hltnode(1) from the command line definitions.

python -m tools.generate_man FILE
"""

import inspect
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import typer

from hltnode.daemon.cli import app
from tools.generate_reference import all_commands

FILES = {
    "/etc/hltnode/node.toml": "configuration of the node, every key explained",
    "/var/lib/hltnode/output": "event files and summaries of runs, readable by the group hltnode",
    "/var/cache/hltnode": "compiled kernels",
}


def page() -> str:
    """The page in mdoc(7)."""
    group = typer.main.get_command(app)
    lines = [
        f".Dd {datetime.now(UTC):%B %d, %Y}",
        ".Dt HLTNODE 1",
        f".Os hltnode {version('hltnode')}",
        ".Sh NAME",
        ".Nm hltnode",
        ".Nd software of one node of a trigger farm: event builder and HLT1",
        ".Sh SYNOPSIS",
        ".Nm",
        ".Ar command",
        ".Op Ar options",
        ".Sh DESCRIPTION",
        *_paragraphs(group.help or ""),
        ".Sh COMMANDS",
    ]
    for name, command in all_commands():
        lines += [f".Ss hltnode {_escaped(name)}", *_paragraphs(command.help or "")]
        if command.params:
            lines.append(".Bl -tag -width Ds")
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                item = f".It Ar {_escaped(parameter.metavar or parameter.name)}"
            else:
                item = ".It " + " , ".join(f"Fl {_escaped(name.removeprefix('-'))}" for name in parameter.opts)
            lines += [item, _escaped(parameter.help or "") or "No further explanation."]
        if command.params:
            lines.append(".El")
    lines += [".Sh FILES", ".Bl -tag -width Ds"]
    for path, meaning in FILES.items():
        lines += [f".It Pa {path}", f"{meaning[0].upper()}{meaning[1:]}."]
    lines += [".El", ".Sh SEE ALSO", ".Xr systemctl 1 ,", ".Xr journalctl 1"]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines += [".Pp", *(_escaped(line) for line in paragraph.splitlines())]
    return lines[1:]


def _escaped(text: str) -> str:
    """Text with mdoc's special characters escaped."""
    text = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
