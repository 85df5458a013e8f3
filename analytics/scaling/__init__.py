"""Scaling: how many instances every operator of a job needs, by several policies, explained number by number.

`rates` makes rates of counters; `ds2`, `flink_autoscaler` and `dhalion` are the policies.
"""
