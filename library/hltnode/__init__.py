"""hltnode: the software of one trigger farm node.

Every import of a part (`hltnode.daemon`, `hltnode.client`, ...) runs this module first, so it must stay cheap: it
imports nothing.
"""

__all__ = ["__version__"]

__version__ = "0.5.0"
