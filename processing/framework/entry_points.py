"""Entry points of installed packages, each found by its name: two packages cannot offer the same one."""

from importlib.metadata import EntryPoint, entry_points


def entry_point(group: str, name: str, what: str) -> EntryPoint:
    """The entry point of a group that one installed package offers under a name.

    what: what the group offers, for the errors, such as "chain".

    Raises ValueError: no package offers the name, which lists the names there are; or several packages do, which names
    each of them. Python would take the one that comes first on its path without a word.
    """
    offered = entry_points(group=group)
    # A package that is found twice on the path is one package: it offers the same object.
    packages = {(_package(point), point.value): point for point in offered.select(name=name)}
    if not packages:
        raise ValueError(f"no {what} named {name!r}: installed are {', '.join(sorted(offered.names)) or 'none'}")
    if len(packages) > 1:
        offers = ", ".join(f"{package} ({value})" for package, value in sorted(packages))
        raise ValueError(f"{what} {name!r} is offered by {len(packages)} packages: {offers}; uninstall all but one")
    (found,) = packages.values()
    return found


def _package(point: EntryPoint) -> str:
    return "a package without metadata" if point.dist is None else point.dist.name
