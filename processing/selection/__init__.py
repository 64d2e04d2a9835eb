"""Selection lines: their records, scalers, and the trigger configuration."""
