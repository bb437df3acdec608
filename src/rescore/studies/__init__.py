"""Everything that fits a model more than once, or looks at a table before any fit."""
