"""Learners whose equations are small neural networks, and what they share."""
