"""The recipe behind ``regard demo``: a small Transformer over characters that reads dates."""

from regard.recipes.system import SystemSpec
from regard.recipes.transformer import original_transformer
from regard.recipes.translation import translation


def date_reader() -> SystemSpec:
    """2+2 layers, 128 wide; characters in, characters out; no regularisation, the data is plenty."""
    model = original_transformer(layers=2, width=128, hidden=256, heads=4, dropout=0.0)
    return translation(model, peak=3e-3, warmup=150).override(
        [
            "data={joint: false, batch_tokens: 1024, source: {unit: character, size: 1000}, "
            "target: {unit: character, size: 100}}",
            "model.tie=target",
            "objective.smoothing=0.0",
            "training.minutes=null",
            "training.steps=2000",
            "training.schedule={kind: linear, peak: 0.003, warmup: 150}",
            "training.validation.every=400",
            "evaluation={metric: exact, examples: 200}",
            "search={kind: greedy}",
        ]
    )
