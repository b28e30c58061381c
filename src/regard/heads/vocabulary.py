"""From a vector to a score for every word; tied, with the embedding's own matrix (Press and Wolf 2017)."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.spec import Spec
from regard.parts.agreement import agreement_cost
from regard.parts.cross_entropy import Advice, cross_entropy
from regard.parts.feedforward import ACTIVATIONS, initialise, type_of_activation
from regard.parts.linear import Linear
from regard.parts.norms import LayerNormSpec, NormSpec


class RephrasingSpec(Spec):
    """A layer between a state and the words: Norm(φ(W x)) (Devlin et al. 2019, in their code)."""

    activation: type_of_activation = "gelu"
    norm: NormSpec = LayerNormSpec()

    def build(self, width: int, inner: int) -> "Rephrasing":
        return Rephrasing(self, width, inner)


class Rephrasing(nn.Module):
    def __init__(self, spec: RephrasingSpec, width: int, inner: int) -> None:
        super().__init__()
        self.linear = initialise(Linear(width, inner))
        self.activation = ACTIVATIONS[spec.activation]
        self.norm = spec.norm.build(inner)

    def forward(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows inner"]:
        y: Tensor = self.norm(self.activation(self.linear(x)))
        return y


class VocabularySpec(Spec):
    bias: bool = False
    rephrasing: RephrasingSpec | None = None
    """A layer in front; null: none."""

    def build(self, width: int, vocabulary: int, tied: nn.Embedding | None) -> "Vocabulary":
        return Vocabulary(self, width, vocabulary, tied)


class Vocabulary(nn.Module):
    def __init__(self, spec: VocabularySpec, width: int, vocabulary: int, tied: nn.Embedding | None) -> None:
        super().__init__()
        bias, inner = spec.bias, tied.embedding_dim if tied is not None else width
        # A tied matrix dictates its width; another one is led there first.
        self.lead: nn.Module | None = None
        if spec.rephrasing is not None:
            self.lead = spec.rephrasing.build(width, inner)
        elif inner != width:
            self.lead = initialise(Linear(width, inner, bias=False))
        self.words = Linear(inner, vocabulary, bias=bias)
        if tied is not None:
            self.words.weight = tied.weight
        else:
            nn.init.normal_(self.words.weight, std=inner**-0.5)
        if bias:
            nn.init.zeros_(self.words.bias)

    def forward(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocabulary"]:
        logits: Tensor = self.words(self._led(x))
        return logits

    def cost(
        self,
        x: Float[Tensor, "rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]:
        """Smoothed cross-entropy of the wanted words, summed: less memory and time than through logits."""
        return cross_entropy(self._led(x), self.words.weight, self.words.bias, wanted, smoothing, advice)

    def cost_of_readings(
        self,
        x: Float[Tensor, "readings rows width"],
        wanted: Int[Tensor, "rows"],
        smoothing: float,
        agreement: float,
        advice: Advice | None = None,
    ) -> Float[Tensor, ""]:
        """The same of two readings that should agree."""
        words = self.words
        return agreement_cost(self._led(x), words.weight, words.bias, wanted, smoothing, agreement, advice)

    def _led(self, x: Tensor) -> Tensor:
        return x if self.lead is None else self.lead(x)
