"""Decoders: bytes of one format in, a trace batch out. One module a format; bad input becomes diagnostics."""
