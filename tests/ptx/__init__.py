"""An interpreter of PTX: it executes kernels that NVRTC compiles for a GPU, without a GPU.

nvrtc compiles, parser reads the text, control_flow finds the meeting points of divergent lanes, translation makes
instructions for the machine (machine.py and machine/*, C++ that is compiled at first use), chain runs a chain of
algorithms and sums the cost of its kernels.
"""
