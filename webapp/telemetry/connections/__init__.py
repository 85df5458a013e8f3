"""Connections: the places that Weir asks by itself, as people add, see, pause and remove them."""
