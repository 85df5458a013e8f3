"""Which windows wait for analysis, the runs over them, and their results."""
