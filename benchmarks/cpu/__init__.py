"""Speed of the CPU back end: ratios to another revision of this repository, built beside and measured in turn."""
