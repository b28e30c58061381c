"""Say what a text is: classifiers over any reader, from nothing or from a model that has read before."""

from regard.data.choices import ChoicesSpec
from regard.data.labelled import LabelledSpec
from regard.data.layouts import FrameSpec, LayoutSpec
from regard.data.tokenizers import TokenizerSpec
from regard.heads.head import HeadSpec
from regard.heads.labels import ChoiceSpec, LabelSpec, NumberSpec
from regard.mixers.convolution import ParallelConvolutionSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.encoder import EncoderSpec
from regard.models.labeller import LabellerSpec
from regard.models.model import ModelSpec
from regard.objectives.judgement import JudgementSpec, WritingSpec
from regard.parts.cells import LongShortTermSpec
from regard.parts.embeddings import EmbeddingSpec
from regard.parts.filters import Filters
from regard.parts.pooling import MaxSpec
from regard.recipes.system import SystemSpec
from regard.search.ranking import RankingSpec
from regard.stacks.join import PlainSpec
from regard.stacks.stack import BlockSpec, StackSpec
from regard.tasks.choosing import ChoosingSpec
from regard.tasks.classification import ClassificationSpec, SimilaritySpec
from regard.tasks.task import TaskSpec
from regard.training.evaluation import EvaluationSpec
from regard.training.optimisation import Adam, AdamW
from regard.training.plan import TrainingSpec, ValidationSpec
from regard.training.schedules import Linear


def classifier(start: ModelSpec | None = None) -> SystemSpec:
    """One text, one class: a bidirectional LSTM whose strongest features count (Conneau et al. 2017)."""
    return judging(start, summed_up(start), texts=1)


def text_cnn() -> SystemSpec:
    """Filters over three, four and five words; the strongest answer of each counts (Kim 2014, CNN-rand).

    Capital letters are kept, as its author did for questions: they tell names.
    """
    head = LabelSpec(pooling=MaxSpec(), dropout=0.5)
    filters = tuple(Filters(width=words, count=100) for words in (3, 4, 5))
    block = BlockSpec(mixers=(ParallelConvolutionSpec(filters=filters),))
    reader = EncoderSpec(embedding=EmbeddingSpec(width=300, dropout=0.2), stack=StackSpec(blocks=(block,)))
    system = judging(None, head, texts=1).model_copy(
        update={"model": LabellerSpec(encoder=reader, head=head)}
    )
    # About fifty questions a batch. Seven times over all of them is enough: more only learns them by heart.
    learned = ["training.epochs=7", "training.minutes=null", "training.averaging.ema=0.99"]
    return system.override(["data.tokenizer.lowercase=false", "data.batch_tokens=512", *learned])


def pair_classifier(start: ModelSpec | None = None) -> SystemSpec:
    """Two texts, one class: entailment, paraphrase, the same question asked twice."""
    return judging(start, summed_up(start), texts=2)


def similarity(start: ModelSpec | None = None) -> SystemSpec:
    """Two texts, one number: how alike they are. Who reads in one direction reads both orders of them."""
    orders = 2 if writes(start) else 1
    head = NumberSpec(pooling=MaxSpec() if start is None else start.summary(), dropout=0.1, together=orders)
    system = judging(start, head, texts=2, numbers=True)
    return system.override(["data.both_orders=true"]) if orders == 2 else system


def multiple_choice(start: ModelSpec | None = None) -> SystemSpec:
    """Each choice is read behind what is given; a softmax over their scores (Devlin et al. 2019 §4.4)."""
    head = ChoiceSpec(
        pooling=MaxSpec() if start is None else start.summary(), dropout=0.3 if start is None else 0.1
    )
    return SystemSpec(
        data=ChoicesSpec(
            tokenizer=TokenizerSpec(unit="word", size=20_000, lowercase=True),
            letters=spells(start),
            layout=layout_for(start),
            batch_tokens=2048,
            longest=room_for(start),
        ),
        model=(model := labeller(start, head)),
        objective=objective_for(start),
        training=learning(start is None, "accuracy", width=model.encoder.embedding.width),
        task=ChoosingSpec(),
        search=RankingSpec(),
        evaluation=EvaluationSpec(metric="accuracy", examples=2000),
    )


def summed_up(start: ModelSpec | None) -> LabelSpec:
    if start is None:
        return LabelSpec(pooling=MaxSpec(), dropout=0.5)
    return LabelSpec(pooling=start.summary(), dropout=0.1)


def judging(start: ModelSpec | None, head: HeadSpec, texts: int, numbers: bool = False) -> SystemSpec:
    task: TaskSpec = SimilaritySpec() if numbers else ClassificationSpec()
    model = labeller(start, head)
    return SystemSpec(
        data=LabelledSpec(
            texts=2 if texts == 2 else 1,
            wanted="number" if numbers else "class",
            tokenizer=TokenizerSpec(unit="word", size=20_000, lowercase=True, min_count=1),
            letters=spells(start),
            layout=layout_for(start),
            batch_tokens=1024 if start is None else 512,
            longest=room_for(start),
        ),
        model=model,
        objective=objective_for(start),
        training=learning(
            start is None, "loss" if numbers else "accuracy", width=model.encoder.embedding.width
        ),
        task=task,
        search=RankingSpec(),
        evaluation=EvaluationSpec(metric="pearson" if numbers else "accuracy", examples=2000),
    )


def labeller(start: ModelSpec | None, head: HeadSpec) -> LabellerSpec:
    """What starts from a writer keeps what it writes with."""
    if start is None:
        return LabellerSpec(encoder=recurrent_reader(), head=head)
    reader = without_letters(start.reader())
    return LabellerSpec(encoder=reader, head=head, words=start.writer(), tied=start.tied_words())


def without_letters(reader: EncoderSpec) -> EncoderSpec:
    """Those that a tagger has added stay behind: they stand at whole words, which only its data know."""
    return reader.model_copy(update={"embedding": reader.embedding.model_copy(update={"letters": None})})


def writes(start: ModelSpec | None) -> bool:
    return start is not None and start.writer() is not None


def spells(start: ModelSpec | None) -> bool:
    """Whether its reader looks at letters."""
    return start is not None and start.reader().embedding.spelling is not None


def layout_for(start: ModelSpec | None) -> LayoutSpec:
    """A writer is told what a row is by tokens of the task's own (Radford et al. 2018 §3.3)."""
    if writes(start):
        return LayoutSpec(frame=FrameSpec())
    return LayoutSpec(begin=start is None or start.begins)


def objective_for(start: ModelSpec | None) -> JudgementSpec:
    return JudgementSpec(beside=WritingSpec() if writes(start) else None)


def room_for(start: ModelSpec | None, usual: int = 256) -> int:
    """Tokens of a row, no more than there are positions."""
    positions = None if start is None else start.reader().embedding.positions.to_dict().get("longest")
    return usual if not isinstance(positions, int) else min(usual, positions)


def recurrent_reader(
    width: int = 100, layers: int = 1, hidden: int = 150, dropout: float = 0.3, embedding_dropout: float = 0.5
) -> EncoderSpec:
    """Each direction of a layer reads both directions of the one below (Irsoy and Cardie 2014)."""
    mixer = RecurrentSpec(cell=LongShortTermSpec(width=hidden), direction="both")
    block = BlockSpec(mixers=(mixer,), join=PlainSpec(dropout=dropout), repeat=layers)
    return EncoderSpec(
        embedding=EmbeddingSpec(width=width, dropout=embedding_dropout), stack=StackSpec(blocks=(block,))
    )


def learning(
    fresh: bool, watch: str, minutes: float = 5.0, width: int = 768, every: int = 100
) -> TrainingSpec:
    """What has read before is only nudged, a few times over all examples (Devlin et al. 2019 appendix A.3:
    5e-5 at a width of 768), a narrower one a little more."""
    if not fresh:
        return TrainingSpec(
            epochs=3,
            optimiser=AdamW(betas=(0.9, 0.999), weight_decay=0.01),
            schedule=Linear(peak=min(round(0.04 / width, 6), 5e-4), warmup_share=0.1),
            clip=1.0,
            validation=ValidationSpec(every=250, watch=watch, patience=None),
        )
    return TrainingSpec(
        minutes=minutes,
        optimiser=Adam(betas=(0.9, 0.999)),
        schedule=Linear(peak=2e-3, warmup=100),
        clip=1.0,
        validation=ValidationSpec(every=every, watch=watch, patience=None),
    )
