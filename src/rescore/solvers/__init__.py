"""Minimisers and regressions: what learners solve their problems with."""
