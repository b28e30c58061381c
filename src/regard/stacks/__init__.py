"""Mixers on top of one another: how a layer's output joins its input, and how layers pile up."""
