"""Clusters: applications that share nodes, and how much their inputs can grow before something drops."""
