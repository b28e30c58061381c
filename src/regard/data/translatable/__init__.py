"""Documents whose texts can be replaced while everything else stays as it is, byte for byte."""
