"""The learners: each lowers the weighted score by changing the graph."""
