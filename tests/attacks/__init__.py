"""Attacks on a node by a client that reaches its ports, with memory and descriptors before, during and after each.

`make attacks` (`python -m tests.attacks`) runs them at full size against `hltnode serve` and prints the table;
tests/daemon/processes/test_attacks.py runs smaller ones in the normal suite.
"""
