"""Code that all packages of the daemon share: vocabulary, logs, sockets, ranges of MEP ids."""
