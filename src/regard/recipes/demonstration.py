"""The recipe behind ``regard demo``: a small Transformer over characters that reads dates."""

from regard.recipes.system import SystemSpec
from regard.recipes.transformer import transformer_model
from regard.recipes.translation import translation


def date_reader() -> SystemSpec:
    """2+2 layers, 128 wide; characters in, characters out."""
    model = transformer_model(layers=2, width=128, hidden=256, heads=4, dropout=0.0)
    return translation(model, peak=3e-3, warmup=200).override(
        [
            "data.joint=false",
            "data.source={unit: character, size: 1000}",
            "data.target={unit: character, size: 100}",
            "model.tie=target",
            "search={kind: greedy}",
            "evaluation={metric: exact, examples: 300}",
        ]
    )
