"""The inner players: each raises the weighted score by changing the row weights."""
