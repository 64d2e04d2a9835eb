"""Entry points of installed packages by name: two packages must not offer the same name."""

from importlib.metadata import EntryPoint, entry_points


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


def _package(point: EntryPoint) -> str:
    return "a package without metadata" if point.dist is None else point.dist.name
