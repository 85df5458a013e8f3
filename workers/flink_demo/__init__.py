"""A real Flink with a job that is held back, to try the whole loop on: `make demo-flink`, `make test-flink`."""
