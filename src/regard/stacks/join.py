"""How the output of a sublayer meets its input."""

from collections.abc import Callable
from typing import ClassVar

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UsageError
from regard.core.spec import Spec
from regard.core.state import State
from regard.core.tape import watching
from regard.parts.dropout import Dropout, LockedDropout
from regard.parts.norms import LayerNormSpec, NormSpec


class Join(nn.Module):
    """Runs ``sublayer`` on x, or on what it makes of x, and joins the result with x."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        sublayer: Callable[[Tensor], tuple[Tensor, State]],
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        y, state = sublayer(x)
        return self.dropout(y), state

    def residual(self, x: Tensor) -> Tensor:
        watch = watching(self)
        return x if watch is None else watch("residual", x)


class PostNorm(Join):
    """Norm(x + f(x)), as drawn in Vaswani et al. 2017."""

    def __init__(self, norm: nn.Module, dropout: float) -> None:
        super().__init__(dropout)
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        sublayer: Callable[[Tensor], tuple[Tensor, State]],
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        y, state = sublayer(x)
        return self.norm(self.dropout.add(self.residual(x), y)), state


class PreNorm(Join):
    """x + f(Norm(x)): gradients reach the bottom undisturbed (Xiong et al. 2020); needs a last norm."""

    def __init__(self, norm: nn.Module, dropout: float) -> None:
        super().__init__(dropout)
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        sublayer: Callable[[Tensor], tuple[Tensor, State]],
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        y, state = sublayer(self.norm(x))
        return self.dropout.add(self.residual(x), y), state


class Residual(Join):
    """x + f(x) (He et al. 2016)."""

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        sublayer: Callable[[Tensor], tuple[Tensor, State]],
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        y, state = sublayer(x)
        return self.dropout.add(self.residual(x), y), state


class HalvedVariance(Join):
    """(x + f(x)) · √½ keeps the variance (Gehring et al. 2017 §3.5)."""

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        sublayer: Callable[[Tensor], tuple[Tensor, State]],
    ) -> tuple[Float[Tensor, "batch time out"], State]:
        y, state = sublayer(x)
        return self.dropout.add(self.residual(x), y) * 0.5**0.5, state


class JoinSpec(Spec):
    kinds: ClassVar[dict[str, str]] = {
        "plain": "regard.stacks.join:PlainSpec",
        "post_norm": "regard.stacks.join:PostNormSpec",
        "pre_norm": "regard.stacks.join:PreNormSpec",
        "halved": "regard.stacks.join:HalvedSpec",
        "residual": "regard.stacks.join:ResidualSpec",
    }
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of the sublayer's output."""

    def build(self, width: int, out: int) -> Join:
        raise NotImplementedError


def _one_width(width: int, out: int) -> int:
    if width != out:
        raise UsageError(f"a residual connection needs one width, but the sublayer turns {width} into {out}")
    return width


class PlainSpec(JoinSpec):
    """No residual connection."""

    locked: bool = False
    """Switch off the same values at all times (Gal and Ghahramani 2016)."""

    def build(self, width: int, out: int) -> Join:
        join = Join(self.dropout)
        if self.locked:
            join.dropout = LockedDropout(self.dropout)
        return join


class PostNormSpec(JoinSpec):
    norm: NormSpec = LayerNormSpec()

    def build(self, width: int, out: int) -> Join:
        return PostNorm(self.norm.build(_one_width(width, out)), self.dropout)


class PreNormSpec(JoinSpec):
    norm: NormSpec = LayerNormSpec()

    def build(self, width: int, out: int) -> Join:
        return PreNorm(self.norm.build(_one_width(width, out)), self.dropout)


class HalvedSpec(JoinSpec):
    def build(self, width: int, out: int) -> Join:
        _one_width(width, out)
        return HalvedVariance(self.dropout)


class ResidualSpec(JoinSpec):
    def build(self, width: int, out: int) -> Join:
        _one_width(width, out)
        return Residual(self.dropout)
