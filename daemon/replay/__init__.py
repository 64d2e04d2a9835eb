"""Replay: sends MEPs from files or from a simulation to one or several nodes."""
