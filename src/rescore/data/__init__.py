"""Data sets: simulated ones, Sachs, and what a data set is."""
