"""Models from and for other programs: their folders in, our runs out, and back."""
