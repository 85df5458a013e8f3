"""Digests by mail: who wants one when, what is in it, and what became of every delivery."""
