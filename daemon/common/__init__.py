"""What every room of the daemon uses: the vocabulary, logs, sockets, ranges of MEP ids."""
