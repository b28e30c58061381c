"""Encoder and decoder together: p(y|x) = Π p(y_t | y_<t, x). Any encoder goes with any decoder."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.sequences import Memory, Tokens
from regard.models.decoder import DecoderSpec, DecoderState
from regard.models.encoder import EncoderSpec
from regard.models.model import ModelSpec
from regard.parts.cross_entropy import Advice


class SequenceToSequenceSpec(ModelSpec):
    tables: ClassVar[Mapping[str, str]] = {
        "source": "encoder.embedding.tokens",
        "target": "decoder.embedding.tokens",
    }
    begins: ClassVar[bool] = False

    encoder: EncoderSpec
    decoder: DecoderSpec
    tie: Literal["none", "target", "all"] = "none"
    """One matrix for the decoder's input and output, or for the encoder's input as well."""

    def with_own_width(self, field: str, width: int) -> ModelSpec:
        """One table for both sides is led to what each side is wide."""
        if self.tie != "all":
            return super().with_own_width(field, width)
        found: ModelSpec = self
        for name in self.tables:
            found = found.with_table(name, width)
        return found

    def reader(self) -> EncoderSpec:
        """Contextual vectors of a translator (McCann et al. 2017)."""
        return self.encoder

    def build(self, sizes: Mapping[str, int]) -> "SequenceToSequence":
        return SequenceToSequence(self, sizes["source"], sizes["target"])


class SequenceToSequence(nn.Module):
    def __init__(self, spec: SequenceToSequenceSpec, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.encoder = spec.encoder.build(source_vocabulary)
        self.decoder = spec.decoder.build(target_vocabulary, self.encoder.width, tied=spec.tie != "none")
        if spec.tie == "all":
            self._share_source_embedding()

    def _share_source_embedding(self) -> None:
        source, target = self.encoder.embedding.tokens, self.decoder.embedding.tokens
        if source.weight.shape != target.weight.shape:
            raise UsageError(
                "tie=all needs one vocabulary and one width on both sides (data.joint=true): source has "
                f"{tuple(source.weight.shape)}, target {tuple(target.weight.shape)}"
            )
        source.weight = target.weight

    @property
    def longest_source(self) -> int | None:
        return self.encoder.embedding.longest

    @property
    def longest_target(self) -> int | None:
        return self.decoder.embedding.longest

    @property
    def longest(self) -> int | None:
        """Tokens that can be read."""
        return self.longest_source

    def layers(self, tokens: Tokens) -> list[Float[Tensor, "batch time _"]]:
        """Of the source: its embedded tokens, and the states after every layer."""
        layers: list[Tensor] = self.encoder.layers(tokens)
        return layers

    def start(self, source: Tokens) -> DecoderState:
        """Read the source; what the decoder knows before its first token."""
        memory: Memory = self.encoder(source)
        return self.decoder.start(source.ids.shape[0], memory)

    def read(
        self, tokens: Tokens, state: DecoderState
    ) -> tuple[Float[Tensor, "batch time width"], DecoderState]:
        return self.decoder.read(tokens, state)

    def predict(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]:
        return self.decoder.predict(x)

    def cost(
        self,
        x: Float[Tensor, "rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]:
        return self.decoder.cost(x, wanted, smoothing, advice)

    def cost_of_readings(
        self,
        x: Float[Tensor, "readings rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        agreement: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]:
        return self.decoder.cost_of_readings(x, wanted, smoothing, agreement, advice)

    def step(
        self, tokens: Int[Tensor, "rows"], state: DecoderState
    ) -> tuple[Float[Tensor, "rows vocabulary"], DecoderState]:
        return self.decoder.step(tokens, state)
