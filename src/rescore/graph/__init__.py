"""Graphs as matrices: the edge convention, acyclicity, thresholds and equivalence classes.

THE EDGE CONVENTION, stated here once and used everywhere: ``W[i, j] != 0`` means i -> j,
from row to column.  In a partially directed graph ``P[i, j] != 0`` and ``P[j, i] != 0``
together mean the undirected edge i - j.  DAGs and their classes are in `rescore.graph.dag`, graphs
in files in `rescore.graph.io`.
"""
