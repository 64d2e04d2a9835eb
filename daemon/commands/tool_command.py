"""Commands that ask a tool of a chain: the chain adds options of its own, and may not have the tool."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from hltnode.processing.offline.chain_tools import ChainTools

TOOL, OWN = "tool", "own"
"""Parameters of a command's function that are no options: the tool, and the options of the chain's own."""


@dataclass(frozen=True, slots=True)
class ToolCommand:
    """A command whose function takes the tool of a chain as `tool`, the name of the chain as `chain`, and, where it has
    the parameter `own`, the options that the tool declares.

    member: the tool's name in ChainTools.
    """

    function: Callable[..., None]
    member: str

    @property
    def default_chain(self) -> str:
        """The chain of a command line that names none."""
        return str(inspect.signature(self.function).parameters["chain"].default)

    def of_chain(self, chain: str) -> Callable[..., None]:
        """The function of the command line of a chain, whose parameters are the options.

        Raises ValueError: the chain is not installed, has no such tool, or declares an option that the command has.
        """
        # A node has no tools, and its command line imports none.
        from hltnode.processing.offline.chain_tools import installed_tools

        tool = tool_of(installed_tools(chain), chain, self.member)
        signature = inspect.signature(self.function)
        common = [parameter for name, parameter in signature.parameters.items() if name not in (TOOL, OWN)]
        own = _options_of(tool.options) if OWN in signature.parameters else []
        names = {parameter.name for parameter in own}
        if both := names & {parameter.name for parameter in common}:
            raise ValueError(f"chain {chain!r}: option {', '.join(sorted(both))} of its tool is one of the command")

        def run(**given: Any) -> None:
            of_tool = {name: given.pop(name) for name in names}
            if OWN in signature.parameters:
                given[OWN] = tool.options(**of_tool)
            self.function(tool, **given)

        annotations = get_type_hints(self.function, include_extras=True)
        keyword_only = [
            parameter.replace(
                annotation=annotations.get(parameter.name, parameter.annotation),
                kind=inspect.Parameter.KEYWORD_ONLY,
            )
            for parameter in (*common, *own)
        ]
        run.__signature__ = signature.replace(parameters=keyword_only)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword_only} | {"return": None}
        run.__doc__ = self.function.__doc__
        return run


def tool_command(member: str) -> Callable[[Callable[..., None]], ToolCommand]:
    """Declares a command that asks a tool of a chain."""
    return lambda function: ToolCommand(function, member)


def tool_of(tools: "ChainTools", chain: str, member: str) -> Any:
    """A tool. Raises ValueError if the chain has none of this kind."""
    make = getattr(tools, member)
    if make is None:
        raise ValueError(
            f"chain {chain} has no {member}: its package offers none under the entry point group hltnode.chain_tools"
        )
    return make()


def chain_named_in(arguments: Sequence[str]) -> str | None:
    """The value of --chain on a command line, which is needed before the options of the command are known; None if it
    is not given."""
    found = None
    for place, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--chain" and place + 1 < len(arguments):
            found = arguments[place + 1]
        elif argument.startswith("--chain="):
            found = argument.removeprefix("--chain=")
    return found


def _options_of(options: type) -> list[inspect.Parameter]:
    """The fields of a dataclass of options as parameters."""
    hints = get_type_hints(options, include_extras=True)
    defaults = options()
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(defaults, field.name),
            annotation=hints[field.name],
        )
        for field in fields(options)
    ]
