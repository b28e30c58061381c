"""What ``--data`` and the arguments of ``diff`` may mean."""

from pathlib import Path

from regard.apps.training import system_named
from regard.core.errors import DataError, UsageError, nearest
from regard.data.corpora import EMBEDDED, embedded
from regard.data.places import find_splits
from regard.data.readers import PAIR, read_records
from regard.recipes.catalogue import RECIPES
from regard.recipes.system import SystemSpec
from regard.training.run_folder import RunFolder


def test_pairs(data: str) -> list[tuple[str, str]]:
    """Pairs to evaluate on: the test part of a corpus or folder, or the whole of a file."""
    if data in EMBEDDED:
        return list(embedded(data).test)
    where = Path(data)
    if where.is_dir():
        splits = find_splits(where)
        chosen = splits.test or splits.valid
        if chosen is None:
            raise DataError("this folder has neither a test nor a validation part", file=where)
        records = read_records(chosen, PAIR)
    else:
        records = read_records(data, PAIR)
    pairs = [(record.fields["source"], record.fields["target"]) for record in records]
    if not pairs:
        raise DataError("there are no examples here", file=data)
    return pairs


def spec_of(name: str) -> SystemSpec:
    """The spec of a run folder, a recipe or a spec file."""
    path = Path(name)
    if RunFolder.holds_run(path):
        folder = RunFolder.open(path)
        return SystemSpec.from_dict(folder.record.spec, where=str(path / "regard.json"))
    if name not in RECIPES and not path.suffix:
        raise UsageError(f"{name!r} is neither a run folder nor a recipe{nearest(name, RECIPES)}")
    return system_named(name)
