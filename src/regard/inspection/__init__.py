"""Traces of what a model looked at, pages that show them without network, drawings for a terminal."""
