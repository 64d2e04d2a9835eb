"""Records the input of a running node to files of Run-3 MEPs."""
