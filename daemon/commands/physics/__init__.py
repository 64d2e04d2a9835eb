"""Commands on reconstruction and simulation of LHCb."""
