"""Say what a text is: classifiers over any reader, from nothing or from a model that has read before."""

from regard.data.labelled import LabelledSpec
from regard.data.layouts import LayoutSpec
from regard.data.tokenizers import TokenizerSpec
from regard.heads.head import HeadSpec
from regard.heads.labels import LabelSpec, NumberSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.encoder import EncoderSpec
from regard.models.labeller import LabellerSpec
from regard.models.model import ModelSpec
from regard.objectives.judgement import JudgementSpec
from regard.parts.cells import LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.pooling import MaxSpec
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.stacks.join import PlainSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.tasks.classification import ClassificationSpec, SimilaritySpec
from regard.tasks.task import TaskSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.optimisation import Adam, AdamW, OptimiserSpec
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import Linear


def classifier(start: ModelSpec | None = None) -> SystemSpec:
    """One text, one class: a bidirectional LSTM whose strongest features count (Conneau et al. 2017)."""
    return judging(start, summed_up(start), texts=1)


def pair_classifier(start: ModelSpec | None = None) -> SystemSpec:
    """Two texts, one class: entailment, paraphrase, the same question asked twice."""
    return judging(start, summed_up(start), texts=2)


def similarity(start: ModelSpec | None = None) -> SystemSpec:
    """Two texts, one number: how alike they are."""
    head = NumberSpec(pooling=MaxSpec() if start is None else start.summary(), dropout=0.1)
    return judging(start, head, texts=2, numbers=True)


def summed_up(start: ModelSpec | None) -> LabelSpec:
    if start is None:
        return LabelSpec(pooling=MaxSpec(), dropout=0.5)
    return LabelSpec(pooling=start.summary(), dropout=0.1)


def judging(start: ModelSpec | None, head: HeadSpec, texts: int, numbers: bool = False) -> SystemSpec:
    task: TaskSpec = SimilaritySpec() if numbers else ClassificationSpec()
    return SystemSpec(
        data=LabelledSpec(
            texts=2 if texts == 2 else 1,
            wanted="number" if numbers else "class",
            tokenizer=TokenizerSpec(unit="word", size=20_000, lowercase=True, min_count=1),
            letters=start is not None and start.reader().embedding.spelling is not None,
            layout=LayoutSpec(begin=start is None or start.begins),
            batch_tokens=1024,
            longest=256,
        ),
        model=LabellerSpec(encoder=recurrent_reader() if start is None else start.reader(), head=head),
        objective=JudgementSpec(),
        training=learning(fresh=start is None, watch="loss" if numbers else "accuracy"),
        task=task,
        search=RankingSpec(),
        evaluation=EvaluationSpec(metric="pearson" if numbers else "accuracy", examples=2000),
    )


def recurrent_reader(
    width: int = 100, layers: int = 1, hidden: int = 150, dropout: float = 0.3, embedding_dropout: float = 0.5
) -> EncoderSpec:
    """Each direction of a layer reads both directions of the one below (Irsoy and Cardie 2014)."""
    mixer = RecurrentSpec(cell=LongShortTermSpec(width=hidden), direction="both")
    block = BlockSpec(mixers=(mixer,), join=PlainSpec(dropout=dropout), repeat=layers)
    return EncoderSpec(
        embedding=EmbeddingSpec(width=width, dropout=embedding_dropout), stack=StackSpec(blocks=(block,))
    )


def learning(fresh: bool, watch: str, minutes: float = 5.0) -> TrainingSpec:
    """What has read before is only nudged (Devlin et al. 2019 appendix A.3)."""
    optimiser: OptimiserSpec = Adam(betas=(0.9, 0.999)) if fresh else AdamW(betas=(0.9, 0.999))
    return TrainingSpec(
        minutes=minutes,
        optimiser=optimiser,
        schedule=Linear(peak=2e-3 if fresh else 5e-5, warmup=100),
        clip=1.0,
        validation=ValidationSpec(every=100, watch=watch, patience=None),
    )
