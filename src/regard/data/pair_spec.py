"""How pairs of texts become batches, in numbers."""

from typing import ClassVar

from pydantic import Field, model_validator

from regard.core.spec import diff
from regard.data.data import DataSpec
from regard.data.readers import PAIR
from regard.data.tokenizers import TokenizerSpec


class PairsPlan(DataSpec):
    """How pairs of texts become batches."""

    fields: ClassVar[tuple[str, ...]] = PAIR

    source: TokenizerSpec = TokenizerSpec()
    target: TokenizerSpec = TokenizerSpec()
    joint: bool = False
    """One vocabulary, learned from both sides; the two specs must then be equal."""
    batch_tokens: int = Field(default=4096, ge=1)
    """Most tokens of a batch on either side, padding counted."""
    longest: int = Field(default=256, ge=3, le=32_000)
    """Most tokens of a text, begin and end marks counted; longer pairs are left out and reported."""
    held_out: float = Field(default=0.02, ge=0.0, le=0.5)
    """Share of the rows kept for validation when no validation data is given."""
    held_out_most: int = Field(default=2000, ge=1)
    """Most rows kept for validation that way."""
    memory_limit: int = Field(default=1 << 28, ge=0)
    """Bytes of tokens on each side beyond which they are mapped from a file instead of kept in memory."""
    whole_limit: int = Field(default=1 << 25, ge=0)
    """Bytes of text beyond which plain files of lines are read in portions, one an epoch; up to here, and in
    other formats always, every epoch goes through all of it."""
    portion_lines: int = Field(default=1 << 16, ge=1)
    """Most lines of a portion, in steps of 256."""
    sample_bytes: int = Field(default=1 << 24, ge=1)
    """Bytes of text, spread evenly over a corpus read in portions, that vocabularies are learned from."""

    @model_validator(mode="after")
    def _possible(self) -> "PairsPlan":
        if self.joint and self.source != self.target:
            different = (f"{path}: {a!r} and {b!r}" for path, a, b in diff(self.source, self.target))
            raise ValueError(f"joint=True needs equal source and target, but {', '.join(different)}")
        if self.longest > self.batch_tokens:
            raise ValueError(f"longest={self.longest} does not fit into batch_tokens={self.batch_tokens}")
        return self
