"""What ``--data`` and the arguments of ``diff`` may mean."""

from pathlib import Path

from regard.apps.training import system_named
from regard.core.errors import DataError, UsageError, nearest
from regard.data.data import DataSpec
from regard.recipes.catalogue import RECIPES
from regard.recipes.system import SystemSpec
from regard.training.run_folder import RunFolder


def test_records(data: str, spec: DataSpec) -> list[tuple[str, ...]]:
    """Examples to evaluate on."""
    records = spec.records(data)
    if not records:
        raise DataError("there are no examples here", file=data)
    return records


def spec_of(name: str) -> SystemSpec:
    """The spec of a run folder, a recipe or a spec file."""
    path = Path(name)
    if name not in RECIPES and not path.suffix and not RunFolder.holds_run(path):
        raise UsageError(f"{name!r} is neither a run folder nor a recipe{nearest(name, RECIPES)}")
    return system_named(name)
