"""Regard."""
