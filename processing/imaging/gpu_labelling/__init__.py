"""Labelling algorithms for GPUs, as sequences of their own: pixel by pixel, HA4 and FLSL."""
