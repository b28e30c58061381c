"""What `regard recipes` says a recipe has reached is what the documents say."""

import re
from pathlib import Path

import pytest

from regard.recipes.catalogue import RECIPES, recipe
from regard.recipes.figures import FIGURES

RESULTS = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_stands_in_the_results_beside_its_recipe(name: str) -> None:
    assert name in RECIPES
    for figure in FIGURES[name]:
        sections = [text for text in re.split(r"^## ", RESULTS, flags=re.M) if name in text]
        assert any(figure.value in section for section in sections), figure


@pytest.mark.parametrize("name", FIGURES)
def test_settings_name_fields_that_exist(name: str) -> None:
    for figure in FIGURES[name]:
        settings = re.findall(r"--set (\S+)", figure.settings)
        recipe(name).override(settings)
