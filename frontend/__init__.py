"""Dash pages inside Django."""
