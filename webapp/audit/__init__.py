"""Who did, or tried to do, what: a record that can only grow."""
