"""What all translators have in common: joint subwords, smoothed next tokens, a falling rate, a beam."""

from regard.data.pairs import PairsSpec
from regard.data.tokenizers import TokenizerSpec
from regard.models.model import ModelSpec
from regard.objectives.next_token import NextTokenSpec
from regard.recipes.system import SystemSpec
from regard.search.beam import BeamSpec
from regard.training.optimisation import Adam, OptimiserSpec
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import Linear


def translation(
    model: ModelSpec,
    peak: float,
    warmup: int,
    optimiser: OptimiserSpec | None = None,
    subwords: int = 10_000,
) -> SystemSpec:
    tokenizer = TokenizerSpec(unit="bpe", size=subwords)
    return SystemSpec(
        data=PairsSpec(source=tokenizer, target=tokenizer, joint=True, batch_tokens=2048),
        model=model,
        objective=NextTokenSpec(smoothing=0.1),
        training=TrainingSpec(
            minutes=30,
            optimiser=optimiser or Adam(),
            schedule=Linear(peak=peak, warmup=warmup),
            clip=1.0,
            validation=ValidationSpec(every=500, patience=12),
        ),
        search=BeamSpec(),
    )
