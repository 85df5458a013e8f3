"""The boundary everyone shares: activities, messages, metrics, results, and how they are stored as Arrow."""
