"""Streaming jobs with their workers and operators."""
