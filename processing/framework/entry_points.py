"""Entry points of installed packages by name: two packages must not offer the same name."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any


def entry_point(group: str, name: str, what: str) -> EntryPoint:
    """The entry point of a group that one installed package offers under a name.

    what: noun for the errors, such as "chain".

    Raises ValueError, with the installed names, if no package or several packages offer the name.
    """
    found = find_entry_point(group, name, what)
    if found is None:
        names = ", ".join(sorted(entry_points(group=group).names))
        raise ValueError(f"no {what} named {name!r}: installed are {names or 'none'}")
    return found


def find_entry_point(group: str, name: str, what: str) -> EntryPoint | None:
    """The entry point, or None if no package offers the name.

    Raises ValueError, which names the packages, if several offer it: Python would silently take the first one on its
    path.
    """
    # A package that appears twice on the path is one package: it offers the same object.
    packages = {(_package(point), point.value): point for point in entry_points(group=group, name=name)}
    if len(packages) > 1:
        offers = ", ".join(f"{package} ({value})" for package, value in sorted(packages))
        raise ValueError(f"{what} {name!r} is offered by {len(packages)} packages: {offers}; uninstall all but one")
    return next(iter(packages.values()), None)


def load_entry_point(point: EntryPoint, what: str) -> Any:
    """The object of an entry point.

    Raises ValueError, with the name and the error, for every exception of its import: the code is that of a package
    which hltnode does not know.
    """
    try:
        return point.load()
    except Exception as error:
        plain = isinstance(error, ImportError | AttributeError)
        text = str(error) if plain else f"{type(error).__name__}: {error}"
        raise ValueError(f"{what} {point.name!r}: {point.value} cannot be loaded: {text}") from error


def _package(point: EntryPoint) -> str:
    return "a package without metadata" if point.dist is None else point.dist.name
