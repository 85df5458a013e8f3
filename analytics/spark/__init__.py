"""Analyses as Spark jobs: the only place that imports pyspark."""
