"""Proposals to reconfigure a job: how they are decided, applied and checked."""
