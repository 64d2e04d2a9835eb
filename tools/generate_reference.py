"""Write the reference pages from the code: configuration, metrics, command line and protocol.

python -m tools.generate_reference            write docs/reference/*.md
python -m tools.generate_reference --check    exit with 1 if a page differs from the code
"""

import argparse
import ast
import inspect
import itertools
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

import hltnode
from hltnode.client import feeder, memory_socket, send_window, silent_meps, sockets
from hltnode.daemon.cli import command_names, import_command
from hltnode.daemon.common.vocabulary import CloseReason, DecisionThread, ThreadSetting
from hltnode.daemon.configuration.description import default, limits, type_name
from hltnode.daemon.configuration.model import ENV_DELIMITER, ENV_PREFIX, NodeConfig
from hltnode.daemon.monitoring.channel_monitor import FINDINGS, ChannelReading
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.detector_conditions import ConditionReading
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.metrics.collector import BuildInfo, NodeCollector
from hltnode.daemon.monitoring.metrics.gpu import GpuReadings, ThrottleReason
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.histograms import HistogramContent, HistogramShape
from hltnode.processing.framework.memory_plan import SlotMemory
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport import control_messages, decisions, frame_header, messages, shared_memory
from hltnode.protocol.written_limits import WRITTEN_LIMITS
from tools.chains_of_this_tree import chains_of_this_tree

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
PROTOCOL_PROSE = Path(__file__).with_name("protocol.md.in")

# Values of these labels are only known at run time; the sample value below represents them.
OPEN_LABELS = {
    "source": "0",
    "type": "",
    "line": "passthrough",
    "collection": "tracks",
    "histogram": "pv_z",
    "quantity": "beam_x",
    "kind": "VELO ASIC",
    "name": "west",
    "run": "0",
    "filesystem": "",
    "uuid": "",
    "driver": "",
}


EXAMPLE_CONDITION = ConditionReading(
    name=OPEN_LABELS["quantity"], unit="", configured=0.0, tolerance=0.0, measured=None, values=0
)
EXAMPLE_CHANNELS = ChannelReading(kind=OPEN_LABELS["kind"], condition="", hits=0, found=dict.fromkeys(FINDINGS, ()))
EXAMPLE_GPU = GpuReadings(
    name=OPEN_LABELS["name"],
    uuid="",
    driver="",
    utilization=0.0,
    memory_used_bytes=0,
    memory_bytes=0,
    temperature_celsius=0.0,
    power_watts=0.0,
    power_limit_watts=0.0,
    sm_clock_hertz=0.0,
    throttled=dict.fromkeys(ThrottleReason, False),
    uncorrected_errors=0,
)


def configuration_page() -> str:
    """Every section and key of `NodeConfig` with type, default, limits and environment variable."""
    lines = [
        "# Configuration",
        "",
        "<!-- Written by tools/generate_reference.py from daemon/configuration/*_sections.py. Do not edit. -->",
        "",
        "`hltnode serve --config FILE` reads one TOML file; `deploy/node.toml` is an example with every key.",
        f"A variable `{ENV_PREFIX}SECTION{ENV_DELIMITER}KEY` in the environment overrides the file; write lists",
        f"as JSON (`{ENV_PREFIX}BUILDER{ENV_DELIMITER}EXPECTED_SOURCES='[0, 2048]'`). An unknown section or key",
        "is an error, in the file and in the environment. So is a variable with a key but without its section",
        f"(`{ENV_PREFIX}SLOTS`). Errors name the variable. Relative paths start at the working directory.",
        "",
    ]
    for name, field in NodeConfig.model_fields.items():
        section = field.annotation
        assert isinstance(section, type)
        assert issubclass(section, BaseModel)
        lines += [f"## [{name}]", "", inspect.getdoc(section) or "", ""]
        lines += ["| key | type | default | limits | meaning |", "|---|---|---|---|---|"]
        for key, of_key in section.model_fields.items():
            cells = (f"`{key}`", type_name(of_key.annotation), default(of_key), limits(of_key), of_key.description)
            lines.append("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def metrics_page() -> str:
    """Every family of `NodeCollector` with its type and its labels."""
    lines = [
        "# Metrics",
        "",
        "<!-- Written by tools/generate_reference.py from daemon/monitoring/metrics. Do not edit. -->",
        "",
        "The node serves these metrics at `/metrics` in the Prometheus text format, with `process_*` metrics.",
        "Times are in seconds, sizes in bytes. Label values known in advance are exported as 0 from the start.",
        "",
        "| metric | type | labels | meaning |",
        "|---|---|---|---|",
    ]
    for family in example_collector().collect():
        suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
        values: dict[str, list[str]] = {}
        for sample in family.samples:
            for label, value in sample.labels.items():
                known = values.setdefault(label, [])
                if value not in known:
                    known.append(value)
        values.pop("le", None)
        labels = "; ".join(_label(label, known, family.type) for label, known in values.items())
        lines.append(f"| `{family.name}{suffix}` | {family.type} | {labels} | {family.documentation} |")
    return "\n".join([*lines, ""])


def command_line_page() -> str:
    """Every command with its help, arguments and options."""
    lines = [
        "# Command line",
        "",
        "<!-- Written by tools/generate_reference.py from daemon/cli.py and daemon/commands. Do not edit. -->",
        "",
    ]
    for name, command in all_commands():
        lines += [f"## hltnode {name}", "", inspect.cleandoc(command.help or ""), ""]
        lines += ["| argument or option | default | meaning |", "|---|---|---|"]
        for parameter in command.params:
            names = [parameter.metavar or parameter.name] if parameter.param_type_name == "argument" else parameter.opts
            default = "required" if parameter.required else _plain(parameter.default)
            cells = (", ".join(f"`{part}`" for part in names), default, parameter.help or "")
            lines.append("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def library_page() -> str:
    """Every public name of the package with its signature, members and docstring."""
    lines = [
        "# Python library",
        "",
        "<!-- Written by tools/generate_reference.py from library/hltnode and analysis. Do not edit. -->",
        "",
        "`import hltnode` offers these names. They stay compatible; everything else is private, `hltnode.client`",
        "excepted ([feed from your DAQ](../how-to/feed-from-your-daq.md)). [Analyse events in",
        "Python](../how-to/analyse-events.md) shows them at work.",
    ]
    functions = [name for name in hltnode.__all__ if inspect.isfunction(getattr(hltnode, name))]
    classes = [name for name in hltnode.__all__ if inspect.isclass(getattr(hltnode, name))]
    for name in (*functions, *classes):
        public = getattr(hltnode, name)
        of_instances = issubclass(public, Exception) if name in classes else False
        signature = "" if name in classes else _signature(public)
        lines += ["", f"## hltnode.{name}", "", "```python", f"{name}{signature}", "```", ""]
        lines += [_as_markdown(inspect.getdoc(public) or "")]
        if name in classes and not of_instances:
            lines += list(_members(public))
    return "\n".join(lines) + "\n"


def _signature(function: Callable[..., Any], *, method: bool = False) -> str:
    """The signature with one parameter per line if it is long."""
    parameters = list(inspect.signature(function, eval_str=False).parameters.values())[int(method) :]
    signature = inspect.signature(function).replace(parameters=parameters)
    text = re.sub(
        r"(hltnode|awkward\.highlevel|pathlib|collections\.abc|typing|os|numpy)(\.\w+)*\.(?=\w)", "", str(signature)
    )
    if len(text) <= 80:
        return text
    inside, _, returned = text[1:].rpartition(")")
    rows = [row.strip() for row in re.split(r", (?=\w+:|\*)", inside)]
    return "(\n    " + ",\n    ".join(rows) + ",\n)" + returned


def _as_markdown(text: str) -> str:
    """A docstring with its section `Args:` as a list."""
    head, mark, rest = text.partition("\nArgs:\n")
    if not mark:
        return text
    arguments, _, tail = rest.partition("\n\n")
    items = []
    for row in arguments.splitlines():
        if re.match(r"    \w+: ", row):
            name, _, about = row.strip().partition(": ")
            items.append(f"- `{name}`: {about}")
        else:
            items.append(f"  {row.strip()}")
    return "\n".join([head, *items, "", tail]).rstrip()


def _members(of: type) -> Iterator[str]:
    """Rows of a table with the public properties and methods of a class that have a docstring."""
    found = []
    for name, member in vars(of).items():
        if name.startswith("_"):
            continue
        called = getattr(member, "fget", None) or getattr(member, "func", None) or member
        text = inspect.getdoc(called) if callable(called) else None
        if text:
            shown = name if called is not member else f"{name}{_signature(called, method=True)}"
            found.append(f"| `{shown}` | {' '.join(text.split())} |")
    if found:
        yield from ("", "| member | meaning |", "|---|---|", *found)


def protocol_page() -> str:
    """The prose of tools/protocol.md.in with the numbers, messages and flags of the code."""
    values = {
        "CONTROL_MAXRT_MS": sockets.CONTROL_MAXRT_MS,
        "DATA_HWM": sockets.DATA_HWM,
        "DATA_MAXRT_MS": sockets.DATA_MAXRT_MS,
        "HELLO_SECONDS": feeder.HELLO_SECONDS,
        "SILENT_HELLOS": feeder.SILENT_HELLOS,
        "MAX_RESENDS": send_window.MAX_RESENDS,
        "OVERTAKEN_SECONDS": silent_meps.OVERTAKEN_NS * 1e-9,
        "UNHEARD_SECONDS": silent_meps.UNHEARD_NS * 1e-9,
        "CONTROL_VERSION": control_messages.CONTROL_VERSION,
        "MAX_CONTROL_SIZE": control_messages.MAX_CONTROL_SIZE,
        "MAX_ITEMS": messages.MAX_ITEMS,
        "MAX_NAME_LENGTH": messages.MAX_NAME_LENGTH,
        "MAX_RANGES": messages.MAX_RANGES,
        "MAX_REMARK_LENGTH": messages.MAX_REMARK_LENGTH,
        "DECISION_VERSION": decisions.DECISION_VERSION,
        "FRAME_VERSION": frame_header.VERSION,
        "FRAME_ALIGNMENT": shared_memory.FRAME_ALIGNMENT,
        "MAX_RANGES_OF_A_MESSAGE": shared_memory.MAX_RANGES_OF_A_MESSAGE,
        "MEMORY_PATIENCE": memory_socket.PATIENCE_SECONDS,
        "MEMORY_VERSION": shared_memory.MEMORY_VERSION,
        "SEALS": shared_memory.SEALS,
        "close_reasons": ", ".join(f"`{reason}`" for reason in CloseReason),
    }
    rows = ["| type | fields |", "|---|---|"]
    for message in typing.get_args(control_messages.ControlMessage):
        hints = typing.get_type_hints(message, include_extras=True)
        fields = ", ".join(f"`{name}` {_wire_type(hints[name])}" for name in message.__struct_fields__)
        rows.append(f"| `{message.__struct_config__.tag}` | {fields} |")
    meanings = _docstrings_of_members(EventFlag)
    named = [
        (int(flag).bit_length() - 1, str(flag.name).lower(), "every", meanings[str(flag.name)]) for flag in EventFlag
    ]
    named += [
        (flag.bit, flag.name, f"`{chain.name}`", flag.text)
        for chain in chains_of_this_tree().values()
        for flag in chain.flags
    ]
    flags = ["| bit | flag | chain | meaning |", "|---|---|---|---|"]
    flags += [f"| {bit} | `{name}` | {chain} | {text} |" for bit, name, chain, text in sorted(named)]
    page = PROTOCOL_PROSE.read_text(encoding="utf-8").format_map(values)
    written = ["| of | limit | reason | because |", "|---|---|---|---|"]
    written += [f"| {row.of} | {row.limit} | `{row.reason}` | {row.because} |" for row in WRITTEN_LIMITS]
    for mark, table in (("messages", rows), ("flags", flags), ("written limits", written)):
        page = page.replace(f"<!-- {mark} -->", "\n".join(table))
    return page


def _wire_type(annotation: Any) -> str:
    """The name of a type in docs/formats/control-messages.md."""
    for name in ("U16", "U32", "U64", "Ranges", "Name", "Remark"):
        if annotation == getattr(messages, name):
            return name.lower()
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("nil" if part is types.NoneType else _wire_type(part) for part in parts)
    if origin is tuple:
        return f"list of {_wire_type(parts[0])}"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return "text: " + ", ".join(f"`{member}`" for member in annotation)
    return {bool: "bool", str: "text"}[annotation]


def _docstrings_of_members(enum: type) -> dict[str, str]:
    """The docstrings below members of an enum class."""
    [definition] = ast.parse(inspect.getsource(enum)).body
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for member, text in itertools.pairwise(definition.body):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            [target] = member.targets
            assert isinstance(target, ast.Name)
            texts[target.id] = " ".join(str(text.value.value).split())
    return texts


def all_commands() -> Iterator[tuple[str, Any]]:
    """Commands with their names, those of groups too: `keys create`."""
    for name in command_names():
        command = import_command(name)
        assert command is not None
        if hasattr(command, "commands"):
            yield from ((f"{name} {part}", of_part) for part, of_part in command.commands.items())
        else:
            yield name, command


def _plain(default: object) -> str:
    if default is None or default is False or callable(default):
        return ""
    return f"`{default.value if isinstance(default, StrEnum) else default}`"


def example_collector() -> NodeCollector:
    """Collector of a node with one value per open label, so that every family has a sample."""
    counters = Counters()
    counters.expect_sources([int(OPEN_LABELS["source"])])
    counters.sources[0].last_seen_ns = 0
    counters.set_error_types({0: OPEN_LABELS["type"]})
    error_bank = encode_mfp(source_id=0, event_id=0, version=0, types=[0], fragments=[b""])
    counters.sources.count_error_banks(0, memoryview(error_bank))
    counters.set_lines([OPEN_LABELS["line"]])
    counters.set_collections([OPEN_LABELS["collection"]])
    counters.thread_settings = dict.fromkeys(itertools.product(DecisionThread, ThreadSetting), True)
    for chain in chains_of_this_tree().values():
        counters.events_flagged |= dict.fromkeys(chain.flag_table.masks, 0)
    shape = HistogramShape(name=OPEN_LABELS["histogram"], bins=1, low=0.0, high=1.0)
    health = Health(loop_tick_ns=0, pipeline_tick_ns=0, feeders_expected=1)
    return NodeCollector(
        counters,
        health,
        BuildInfo(version="", node="", backend="", chain="", tck=""),
        NodeState(
            sources=(int(OPEN_LABELS["source"]),),
            lost_feeders=(OPEN_LABELS["name"],),
            gpu=EXAMPLE_GPU,
            detector_conditions=(EXAMPLE_CONDITION,),
            channels=(EXAMPLE_CHANNELS,),
        ),
        SlotMemory(0, 0, 0, 0),
        health_ns=0,
        monotonic_ns=0,
        wall_s=0.0,
        histograms=[HistogramContent(shape, np.zeros(shape.n_counts, np.uint64))],
        histogram_buckets=1,
    )


PAGES: dict[str, Callable[[], str]] = {
    "command-line.md": command_line_page,
    "configuration.md": configuration_page,
    "metrics.md": metrics_page,
    "python-library.md": library_page,
    "protocol.md": protocol_page,
}


def main() -> int:
    """Write or check all pages; the exit status is the number of pages that differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a page is out of date")
    check = parser.parse_args().check
    outdated = 0
    for name, page in PAGES.items():
        path = REFERENCE / name
        if path.exists() and path.read_text(encoding="utf-8") == page():
            continue
        outdated += 1
        if check:
            print(f"{path} is out of date: run tools/generate_reference.py", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page(), encoding="utf-8")
            print(f"{path} written")
    return int(check and outdated > 0)


def _label(label: str, known: list[str], metric_type: str) -> str:
    if metric_type == "info" or OPEN_LABELS.get(label) in known:
        return f"`{label}`"
    return f"`{label}`: " + ", ".join(known)


if __name__ == "__main__":
    sys.exit(main())
