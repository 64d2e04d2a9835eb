"""hltnode farm: a model of many nodes, its measurements, and the size of a farm."""
