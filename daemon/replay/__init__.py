"""The sending side: MEPs from files or the simulation to one node or several."""
