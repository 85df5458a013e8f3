"""One module a Spark job."""
