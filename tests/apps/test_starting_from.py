"""Task recipes on models that have read before: what goes over, what is new, what the rows look like."""

from pathlib import Path

import pytest
import torch

import regard
from regard.apps.training import spec_of_run, train
from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.models.labeller import Labeller
from regard.models.language_model import LanguageModel
from regard.objectives.judgement import JudgementSpec, WritingSpec
from regard.objectives.objective import Progress
from regard.recipes.catalogue import RECIPES, recipe
from regard.training.thawing import depths_of
from regard.training.weights import read_weights
from tests.apps.toys import examples, kind_of, toy

FRAMED = ("classifier", "pair_classifier", "similarity", "multiple_choice", "span_answerer")


class Starts(dict[str, Path]):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        given, valid = examples(name, 60), examples(name, 12, seed=1)
        self[name] = train(toy(name), given, self.folder / name, valid=valid, steps=3, seed=1).run.path
        return self[name]


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Starts:
    """Runs to start from, trained for a moment when they are first wanted."""
    return Starts(tmp_path_factory.mktemp("starts"))


def started(name: str, start: Path, out: Path, *settings: str, steps: int = 4) -> regard.Run:
    kind = kind_of(recipe(name))
    quick = ("training.validation.every=10", "evaluation.examples=8", *settings)
    given, valid = kind.examples(40, 0), kind.examples(8, 1)
    return train(name, given, out, valid=valid, steps=steps, seed=2, settings=quick, start_from=start).run


def stored(path: Path) -> dict[str, torch.Tensor]:
    return read_weights(path / "model.safetensors")


@pytest.mark.parametrize("name", FRAMED)
def test_a_writer_reads_rows_framed_by_new_tokens(name: str, starts: Starts, tmp_path: Path) -> None:
    before = stored(starts["gpt_tiny"])["decoder.embedding.tokens.weight"]
    run = started(name, starts["gpt_tiny"], tmp_path, "training.thawing.freeze=all")
    tokenizer, table = run.lexicon["text"], stored(tmp_path)["encoder.embedding.tokens.weight"]
    frame = [tokenizer.number_of(f"<{name}>") for name in ("start", "delimiter", "extract")]
    assert frame == [len(before), len(before) + 1, len(before) + 2]
    assert torch.equal(table[: len(before)], before)  # old rows are the old ones, to the bit
    assert len(table) == len(before) + 3 == tokenizer.size
    (source, *_) = kind_of(recipe(name)).questions()
    pieces = run.task().written(source).read
    assert (pieces[0], pieces[-1]) == ("<start>", "<extract>")
    assert pieces.count("<delimiter>") == (0 if name == "classifier" else 1)
    assert regard.load(tmp_path).answers([source]) == run.answers([source])


def test_new_rows_learn_while_old_ones_are_kept_in_mind(starts: Starts, tmp_path: Path) -> None:
    """With everything thawed all rows may move; the new ones must."""
    run = started("classifier", starts["gpt_tiny"], tmp_path / "a", steps=1)
    table = stored(tmp_path / "a")["encoder.embedding.tokens.weight"]
    more = started("classifier", starts["gpt_tiny"], tmp_path / "b", steps=6)
    assert run.spec.model == more.spec.model
    moved = (stored(tmp_path / "b")["encoder.embedding.tokens.weight"] - table).abs().sum(1)
    assert bool((moved[-3:] > 0)[[0, 2]].all())


def test_a_framed_token_in_a_text_is_text(starts: Starts, tmp_path: Path) -> None:
    run = started("classifier", starts["gpt_tiny"], tmp_path)
    read = run.task().written("ab<extract>").read
    assert read.count("<extract>") == 1


def test_both_orders_of_a_pair_say_the_same(starts: Starts, tmp_path: Path) -> None:
    run = started("similarity", starts["gpt_tiny"], tmp_path)
    (one,), (other,) = (run.answers([text]) for text in ("abc\tdef", "def\tabc"))
    assert one.candidates[0].score == pytest.approx(other.candidates[0].score, abs=1e-5)
    (alike,) = run.answers(["abc\tdee"])
    assert alike.candidates[0].score != pytest.approx(one.candidates[0].score, abs=1e-7)


def test_writing_beside_judging_is_equation_five(starts: Starts) -> None:
    """Against the language model itself: L₂ + λ · mean −log p(next token)."""
    writer = regard.load(starts["gpt_tiny"])
    spec = recipe("classifier", writer.spec.model)
    judge = spec.model.build({"text": writer.lexicon["text"].size, "label": 3}).eval()
    assert isinstance(judge, Labeller)
    judge.encoder.load_state_dict(
        {name.removeprefix("decoder."): weight for name, weight in stored(starts["gpt_tiny"]).items()}
    )
    tokens = Tokens.pad([[4, 5, 6, 7, 3], [5, 4, 3]], 0)
    batch = _Batch(tokens, torch.tensor([[2], [0]]))
    progress = Progress(step=1, epoch=0, seed=1)
    alone = JudgementSpec().build()(judge, batch, progress)
    both = JudgementSpec(beside=WritingSpec(weight=0.25)).build()(judge, batch, progress)
    assert isinstance(writer.model, LanguageModel)
    log_probs = []
    for row in ([4, 5, 6, 7, 3], [5, 4, 3]):
        x, _ = writer.model.read(Tokens.whole(torch.tensor([row[:-1]])), writer.model.start(1))
        log_probs += writer.model.log_probs_of(x[0], torch.tensor(row[1:])).tolist()
    expected = float(alone.loss.detach()) + 2 * 0.25 * -sum(log_probs) / 6
    assert float(both.loss.detach()) == pytest.approx(expected, rel=1e-5)
    assert both.count == alone.count == 2
    assert JudgementSpec(beside=WritingSpec()).for_validation() == JudgementSpec()


class _Batch:
    def __init__(self, tokens: Tokens, wanted: torch.Tensor) -> None:
        self.tokens, self.wanted, self.places = tokens, wanted, None


@pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param(name, start, marks=() if name == "classifier" or start == "bert" else pytest.mark.slow)
        for name in ("classifier", "multiple_choice", "tagger", "span_answerer")
        for start in ("bert", "rnn_lm", "seq2seq", "elmo")
    ],
)
def test_any_run_can_be_started_from(name: str, start: str, starts: Starts, tmp_path: Path) -> None:
    run = started(name, starts[start], tmp_path, "training.thawing.freeze=all")
    there, here = stored(starts[start]), stored(tmp_path)
    for weight, tensor in here.items():
        added = weight.startswith("encoder.embedding.letters.")  # nothing there knew of capital letters
        if weight.startswith(("encoder.embedding.", "encoder.stack.")) and not added:
            source = there.get(weight, there.get(weight.replace("encoder.", "decoder.", 1)))
            assert source is not None, weight
            assert torch.equal(tensor[: len(source)], source), weight
    assert run.answers(kind_of(recipe(name)).questions()[:3])


def test_a_row_has_no_more_tokens_than_there_are_positions() -> None:
    assert recipe("classifier", recipe("gpt_tiny").model).data.to_dict()["longest"] == 64
    assert recipe("classifier", recipe("gpt2_small").model).data.to_dict()["longest"] == 256
    assert recipe("classifier", recipe("bert").model).data.to_dict()["longest"] == 256


def test_a_task_can_start_from_another_task(starts: Starts, tmp_path: Path) -> None:
    started("pair_classifier", starts["bert"], tmp_path / "a")
    again = started("pair_classifier", tmp_path / "a", tmp_path / "b")
    assert again.spec.model == regard.load(tmp_path / "a").spec.model


def test_letters_go_from_tagger_to_tagger_and_stay_behind_elsewhere(starts: Starts, tmp_path: Path) -> None:
    """Those of a tagger stand at whole words, which the texts of other tasks are not cut into."""
    other = "model.encoder.embedding.letters.letter_width=7"
    tagger = started("tagger", starts["bert"], tmp_path / "tagger", other)
    again = started("tagger", tagger.path, tmp_path / "again")
    assert again.spec.model.reader() == tagger.spec.model.reader()
    for name in ("classifier", "multiple_choice", "span_answerer"):
        run = started(name, tagger.path, tmp_path / name)
        assert run.spec.model.reader().embedding.letters is None
        assert run.answers(kind_of(recipe(name)).questions()[:2])


def test_what_reads_nothing_is_refused(tmp_path: Path) -> None:
    given, valid = examples("ngram", 20), examples("ngram", 5, seed=1)
    path = train(toy("ngram"), given, tmp_path / "n", valid=valid, seed=1).run.path
    with pytest.raises(UsageError, match="'ngram' has nothing that reads"):
        started("classifier", path, tmp_path / "c")


# What stays and what moves, to the bit


STARTS = dict.fromkeys(("classifier", "pair_classifier", "similarity", "tagger"), "bert")
STARTS |= {"multiple_choice": "bert", "span_answerer": "bert", "cove": "bahdanau", "ulmfit": "awd_lstm"}


def test_every_recipe_that_builds_on_others_is_among_these() -> None:
    tasks = {name for name, entry in RECIPES.items() if entry.builds_on}
    assert tasks - {"ulmfit_lm"} <= set(STARTS)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("tagger", "cove") else pytest.mark.slow, id=name)
        for name in STARTS
    ],
)
def test_what_is_frozen_stays_to_the_bit_and_the_rest_moves(
    name: str, starts: Starts, tmp_path: Path
) -> None:
    kind = kind_of(recipe(name))
    given = valid = kind.examples(6, 0)
    start = spec_of_run(starts[STARTS[name]])
    spec = recipe(name, start.model)
    before = stored(starts[STARTS[name]])

    def moved(freeze: str, steps: int) -> set[int]:
        """The depths that differ from where they started; all data are one batch, so a step is an epoch."""
        out, quick = (
            tmp_path / f"{freeze} {steps}",
            ["training.validation.every=50", "data.batch_tokens=9999"],
        )
        chosen = spec.override([f"training.thawing.freeze={freeze}", "training.schedule.warmup=0", *quick])
        trained = train(chosen, given, out, valid=valid, steps=steps, seed=2, start_from=starts[STARTS[name]])
        depths = depths_of(trained.run.model)
        fresh = chosen.model.build(trained.run.lexicon.sizes).state_dict()
        after, found = stored(out), dict[int, bool]()
        for weight, depth in depths.items():
            if weight not in after:
                continue
            source = before.get(weight, before.get(weight.replace("encoder.", "decoder.", 1)))
            if source is None and weight in fresh and depth < max(depths.values()):
                pytest.fail(f"{weight} did not go over")
            if source is not None and source.shape == after[weight].shape:
                found[depth] = found.get(depth, False) or not torch.equal(after[weight], source)
        return {depth for depth, changed in found.items() if changed}

    layers = max(depths_of(spec.model.build({"text": 30, "label": 3, "kind": 2})).values()) - 1
    assert moved("all", 2) <= {layers + 1}
    assert moved("none", 1) >= set(range(layers + 1))
    assert moved("embeddings", 1) & set(range(layers + 1)) == set(range(1, layers + 1))
    assert moved("gradual", 2) & set(range(layers + 1)) == {layers}


def test_freezing_needs_something_to_keep(starts: Starts, tmp_path: Path) -> None:
    given, valid = examples("classifier", 10), examples("classifier", 4, seed=1)
    for setting, said in (
        ("freeze=all", "--freeze all keeps what was learned before: name a run with --from"),
        ("freeze=embeddings", "--from, or words that were with --vectors"),
        ("layer_decay=0.5", "--layer-decay spares what was learned before"),
    ):
        spec = toy("classifier", f"training.thawing.{setting}")
        with pytest.raises(UsageError, match=said):
            train(spec, given, tmp_path, valid=valid, steps=1)
    with pytest.raises(
        UsageError, match=r"freeze=all: nothing is left to train, since this model is all reader"
    ):
        train(
            toy("gpt_tiny", "training.thawing.freeze=all"),
            examples("gpt_tiny", 60),
            tmp_path / "lm",
            valid=examples("gpt_tiny", 12, seed=1),
            steps=1,
            start_from=starts["gpt_tiny"],
        )


def test_cove_reads_with_the_source_side_of_a_translator(starts: Starts, tmp_path: Path) -> None:
    run = started("cove", starts["bahdanau"], tmp_path)
    assert run.spec.to_dict()["training"]["thawing"]["freeze"] == "all"
    there = regard.load(starts["bahdanau"])
    assert run.lexicon["text"].vocabulary() == there.lexicon["source"].vocabulary()
    text = "abc"
    (reading,) = run.spec.data.readings(run.lexicon["text"], [text])  # type: ignore[attr-defined]
    source = Tokens.whole(
        torch.tensor([[*there.lexicon["source"].encode(text), there.lexicon["source"].end]])
    )
    assert source.ids.tolist() == [reading.ids]  # as the translator read its sentences
    theirs, ours = there.model.encoder(source).states, run.model.encoder(source).states  # type: ignore
    assert torch.equal(theirs, ours)
    with pytest.raises(UsageError, match=r"cove reads with the encoder of a translator.*'masked'"):
        started("cove", starts["bert"], tmp_path / "other")
