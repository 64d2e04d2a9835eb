"""An interpreter of PTX: it executes the kernels as NVRTC makes them for a GPU, without one.

nvrtc compiles, parser reads the text, control_flow finds where divergent lanes meet, translation makes instructions for
the machine (machine.py and machine/*, C++ that is compiled when it is first needed), chain runs a chain of algorithms
and sums up what its kernels cost.
"""
