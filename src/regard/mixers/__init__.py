"""Everything that moves information along time, behind one contract: see ``mixer``."""
