"""Fewer edges: candidates before a learner, parents that explain nothing after it."""
