"""Wirings: an encoder, a decoder, and the two together."""
