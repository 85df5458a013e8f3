"""One module a kind of task."""
