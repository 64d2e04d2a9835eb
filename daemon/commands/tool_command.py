"""Commands that use a tool of a chain: the chain may add options, and may lack the tool."""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from hltnode.processing.offline.chain_tools import ChainTools

TOOL, OWN = "tool", "own"
"""Parameters of the function of a command that are no options: the tool, and the options of the chain."""


@dataclass(frozen=True, slots=True)
class ToolCommand:
    """A command that uses a tool of a chain.

    Its function takes the tool as `tool`, the name of the chain as `chain`, and, if it has the parameter `own`, the
    options that the tool declares.

    member: name of the tool in ChainTools.
    """

    function: Callable[..., None]
    member: str

    @property
    def default_chain(self) -> str:
        """The chain of a command line without --chain."""
        return str(inspect.signature(self.function).parameters["chain"].default)

    def of_chain(self, chain: str) -> Callable[..., None]:
        """The function of the command for a chain; its parameters are the options.

        Raises ValueError: the chain is not installed, lacks the tool, or declares an option of the command.
        """
        # Local import: the node needs no tools.
        from hltnode.processing.offline.chain_tools import installed_tools

        tool = tool_of(installed_tools(chain), chain, self.member)
        signature = inspect.signature(self.function)
        hints = get_type_hints(self.function, include_extras=True)
        common = [
            parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in signature.parameters.items()
            if name not in (TOOL, OWN)
        ]
        own = _options_of(tool.options) if OWN in signature.parameters else []
        _check_distinct(chain, common, own)
        names = {parameter.name for parameter in own}

        def run(**given: Any) -> None:
            of_tool = {name: given.pop(name) for name in names}
            if OWN in signature.parameters:
                given[OWN] = tool.options(**of_tool)
            self.function(tool, **given)

        parameters = [*common, *own]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
        doc = inspect.cleandoc(self.function.__doc__ or "")
        run.__doc__ = (doc if chain == self.default_chain else _example_of(chain, doc)) + _about(chain, own)
        return run


def tool_command(member: str) -> Callable[[Callable[..., None]], ToolCommand]:
    """Declare a command that uses a tool of a chain."""
    return lambda function: ToolCommand(function, member)


def tool_of(tools: "ChainTools", chain: str, member: str) -> Any:
    """A tool of a chain. Raises ValueError if the chain lacks it, or if it cannot be imported."""
    make = getattr(tools, member)
    if make is None:
        raise ValueError(
            f"chain {chain} has no {member}: its package offers none under the entry point group hltnode.chain_tools"
        )
    try:
        return make()
    except ImportError as error:
        raise ValueError(f"chain {chain}: its {member} cannot be imported: {error}") from error


def chain_named_in(arguments: Sequence[str]) -> str | None:
    """The value of --chain in the arguments; None if it is not given.

    It is needed before the parser runs, because the options of the command depend on the chain.
    """
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


def _check_distinct(chain: str, common: Sequence[inspect.Parameter], own: Sequence[inspect.Parameter]) -> None:
    """Raises ValueError if the command already has an option of the chain."""
    taken = {word for parameter in common for word in (parameter.name, *_declarations(parameter))}
    for parameter in own:
        for word in (parameter.name, *_declarations(parameter)):
            if word in taken:
                raise ValueError(
                    f"chain {chain!r}: its tool declares {word}, which is already an option of the command"
                )


def _example_of(chain: str, doc: str) -> str:
    """The text of a command with its first example alone, for a chain: others have options of the default chain."""
    paragraphs = doc.split("\n\n")
    word, found, example = paragraphs[-1].partition(": ")
    if not found or not word.startswith("Example"):
        return doc
    # Options behind the name of the first file may be those of the default chain as well.
    return "\n\n".join([*paragraphs[:-1], f"Example: {example.partition(';')[0]} --chain {chain}"])


def _about(chain: str, own: Sequence[inspect.Parameter]) -> str:
    """A paragraph that lists the options added by a chain."""
    if not own:
        return ""
    names = ", ".join(declaration for parameter in own for declaration in _declarations(parameter))
    text = f"Options added by chain {chain}: {names}. With --chain NAME, --help lists the options of another chain."
    return "\n\n" + textwrap.fill(text, 100, break_on_hyphens=False)


def _declarations(parameter: inspect.Parameter) -> tuple[str, ...]:
    """The option names of a parameter, such as --velo-banks."""
    # typer stores the first declaration as the default of a parameter without Annotated.
    given = [
        word
        for info in getattr(parameter.annotation, "__metadata__", ())
        for word in (info.default, *(info.param_decls or ()))
        if isinstance(word, str) and word.startswith("-")
    ]
    return tuple(given) or (f"--{parameter.name.replace('_', '-')}",)
