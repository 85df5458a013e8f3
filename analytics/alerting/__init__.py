"""When something is worth an alert, and when it is over: a state machine over a series of values."""
