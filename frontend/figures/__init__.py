"""Charts as pure functions: values in, figure out."""
