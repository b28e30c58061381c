"""From a vector to a score for every word; tied, with the embedding's own matrix (Press and Wolf 2017)."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.spec import Spec
from regard.parts.cross_entropy import cross_entropy
from regard.parts.feedforward import initialise


class VocabularySpec(Spec):
    bias: bool = False

    def build(self, width: int, vocabulary: int, tied: nn.Embedding | None) -> "Vocabulary":
        return Vocabulary(width, vocabulary, self.bias, tied)


class Vocabulary(nn.Module):
    def __init__(self, width: int, vocabulary: int, bias: bool, tied: nn.Embedding | None) -> None:
        super().__init__()
        inner = tied.embedding_dim if tied is not None else width
        # A tied matrix dictates its width; another one is led there first.
        self.lead = initialise(nn.Linear(width, inner, bias=False)) if inner != width else None
        self.words = nn.Linear(inner, vocabulary, bias=bias)
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
        self, x: Float[Tensor, "rows width"], wanted: Int[Tensor, "rows"], smoothing: float
    ) -> Float[Tensor, ""]:
        """Smoothed cross-entropy of the wanted words, summed: less memory and time than through logits."""
        return cross_entropy(self._led(x), self.words.weight, self.words.bias, wanted, smoothing)

    def _led(self, x: Tensor) -> Tensor:
        return x if self.lead is None else self.lead(x)
