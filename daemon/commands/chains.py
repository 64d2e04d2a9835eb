"""hltnode chains: the installed chains with their sequences, kernels and tools."""

from dataclasses import asdict, dataclass, fields
from importlib.metadata import EntryPoint, entry_points

from hltnode.daemon.commands.common import JsonOption, echo_folded, require_writable, user_errors, write_json
from hltnode.daemon.commands.terminal import echo
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.offline.chain_tools import ChainTools, installed_tools
from hltnode.processing.selection.trigger_chain import ENTRY_POINTS, TriggerChain, installed_chain


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledChain:
    """One of the installed chains.

    sequences: names, the default sequence first. kernels: instruction sets with built kernels. kernel_error: why no
    kernel can be loaded. error: why the chain or its tools cannot be loaded.
    """

    name: str
    package: str
    version: str
    sequences: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    kernel_error: str = ""
    tools: tuple[str, ...] = ()
    error: str = ""


def chains(
    json: JsonOption = None,
) -> None:
    """List the installed chains: package, sequences, whether their kernels are built, and their tools.

    Example: hltnode chains --json -
    """
    with user_errors():
        require_writable(json)
        found = installed_chains()
        write_json(json, {"chains": [asdict(chain) for chain in found]})
    for chain in found:
        show(chain)


def installed_chains() -> list[InstalledChain]:
    """All chains of installed packages, sorted by name; a chain that cannot be loaded has an error."""
    offered = {(point.name, *package_of(point)): point for point in entry_points(group=ENTRY_POINTS)}
    return [_described(name, package, version) for name, package, version in sorted(offered)]


def package_of(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the package of an entry point."""
    return ("", "") if point.dist is None else (point.dist.name, point.dist.version)


def _described(name: str, package: str, version: str) -> InstalledChain:
    try:
        chain = installed_chain(name)
        tools = installed_tools(name)
    except Exception as error:  # An external package may raise any exception during its import.
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return InstalledChain(name=name, package=package, version=version, error=text)
    kernels, kernel_error = _kernels(chain)
    others = (other for other in chain.sequences if other != chain.default_sequence)
    return InstalledChain(
        name=name,
        package=package,
        version=version,
        sequences=(chain.default_sequence, *others) if chain.sequences else (),
        kernels=kernels,
        kernel_error=kernel_error,
        tools=tuple(field.name for field in fields(ChainTools) if callable(getattr(tools, field.name))),
    )


def _kernels(chain: TriggerChain) -> tuple[tuple[str, ...], str]:
    try:
        return tuple(KernelLibrary(chain.kernels).targets), ""
    except BackendError as error:
        return (), str(error)


def show(chain: InstalledChain) -> None:
    """Print a chain in lines of at most 80 columns; an error has its own line."""
    echo(f"{chain.name}: package {chain.package or 'unknown'} {chain.version}".rstrip())
    if chain.error:
        echo(f"  cannot be loaded: {chain.error}")
        return
    _show_list("sequences", chain.sequences, "one, without a name")
    if chain.kernel_error:
        echo(f"  kernels not built: {chain.kernel_error}")
    else:
        _show_list("kernels built for", chain.kernels, "no instruction set of this machine")
    _show_list("tools", chain.tools, "none")


def _show_list(title: str, names: tuple[str, ...], if_empty: str) -> None:
    parts = [f"{name}, " for name in names[:-1]] + [names[-1] if names else if_empty]
    echo_folded(f"  {title}: ", *parts)
