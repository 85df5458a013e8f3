"""What jobs report: batches, segments, metrics, annotations and the sources they come from."""
