"""Rows that may be anywhere: scans of tables too large for memory, and passes over them."""
