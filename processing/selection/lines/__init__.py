"""What is declared: the inputs of a detector, lines and histograms on them, their scalers, and what they decide."""
