"""A number for every token: how much it looks as if it did not belong there."""

from jaxtyping import Float
from torch import Tensor, nn

from regard.core.spec import Spec
from regard.parts.feedforward import ACTIVATIONS, initialise, type_of_activation


class DetectionSpec(Spec):
    activation: type_of_activation = "gelu"
    """Of the layer between a state and its number."""

    def build(self, width: int) -> "Detection":
        return Detection(self, width)


class Detection(nn.Module):
    """wᵀ φ(W h) (Clark et al. 2020 §2, and their code)."""

    def __init__(self, spec: DetectionSpec, width: int) -> None:
        super().__init__()
        self.between, self.activation = initialise(nn.Linear(width, width)), ACTIVATIONS[spec.activation]
        self.answer = initialise(nn.Linear(width, 1))

    def forward(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows"]:
        scores: Tensor = self.answer(self.activation(self.between(x)))[..., 0]
        return scores
