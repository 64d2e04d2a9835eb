"""The library for physicists: events as arrays, files, simulation, rates and pictures, for every chain.

`import hltnode` offers all that is public; the modules here are private.
"""
