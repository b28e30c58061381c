"""Writing beyond a model's positions."""

import torch

from regard.core.sequences import Tokens
from regard.models.language_model import LanguageModel
from regard.recipes.gpt import gpt_model
from regard.tasks.windows import Sliding

LONGEST = 8


def model_of() -> LanguageModel:
    torch.manual_seed(1)
    spec = gpt_model(layers=2, width=16, heads=2, positions=LONGEST, dropout=0.0)
    return spec.build({"text": 20}).double().eval()


def written(sliding: Sliding, prompts: list[list[int]], more: list[list[int]]) -> torch.Tensor:
    """Log-probabilities after every further token of each row."""
    state = sliding.start(len(prompts), torch.device("cpu"))
    state = sliding.read(Tokens.pad(prompts, 0), state)
    found = []
    for tokens in torch.tensor(more).T:
        log_probs, state = sliding.step(tokens, state)
        found.append(log_probs)
    return torch.stack(found, dim=1)


@torch.no_grad()
def test_until_it_is_full_nothing_is_forgotten() -> None:
    model = model_of()
    sliding = Sliding(model, LONGEST, padding=0)
    whole, _ = model.read(Tokens.whole(torch.tensor([[3, 5, 7, 9, 11, 4, 6, 8]])), model.start(1))
    expected = model.predict(whole[:, 3:]).log_softmax(-1)
    torch.testing.assert_close(written(sliding, [[3, 5, 7]], [[9, 11, 4, 6, 8]]), expected)


@torch.no_grad()
def test_a_full_row_goes_on_from_its_newer_half() -> None:
    model = model_of()
    sliding = Sliding(model, LONGEST, padding=0)
    got = written(sliding, [[3, 5, 7, 9]], [[11, 4, 6, 8, 10, 12]])[0, 4:]
    x, _ = model.read(Tokens.whole(torch.tensor([[11, 4, 6, 8, 10, 12]])), model.start(1))
    torch.testing.assert_close(got, model.predict(x[0, 4:]).log_softmax(-1))


@torch.no_grad()
def test_a_row_does_not_depend_on_its_neighbours() -> None:
    sliding = Sliding(model_of(), LONGEST, padding=0)
    prompts = [[3], [3, 5, 7, 9, 11, 4], [6, 8, 3]]
    more = torch.randint(4, 20, (3, 20), generator=torch.Generator().manual_seed(2)).tolist()
    together = written(sliding, prompts, more)
    for row in range(3):
        torch.testing.assert_close(
            written(sliding, prompts[row : row + 1], more[row : row + 1])[0], together[row]
        )
