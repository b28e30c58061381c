"""What the command line says about the runs to be served."""

from collections.abc import Callable, Sequence
from pathlib import Path

from starlette.types import ASGIApp

from regard.apps.inspector import Inspected
from regard.apps.inspector_server import inspector_app
from regard.apps.serving.shelf import Offer, Shelf
from regard.core.errors import UsageError, nearest
from regard.training.run_folder import RunFolder


def offers_of(folders: Sequence[str], languages: Sequence[str]) -> list[Offer]:
    """Of ``[NAME=]DIR`` and ``[NAME=]FROM:TO``; a single run needs no name in either."""
    places = dict(map(_named, folders))
    if len(places) < len(folders):
        raise UsageError("two runs have one name: give them others, as in one=DIR two=DIR")
    spoken = dict(_spoken(given, list(places)) for given in languages)
    return [Offer(name, folder, spoken.get(name)) for name, folder in places.items()]


def listed(folder: Path) -> bool:
    """Beside translators others may be served, which have no shortlist."""
    return RunFolder.open(folder).has_shortlist()


def refuse_without_shortlist(offers: Sequence[Offer]) -> None:
    if not any(listed(offer.folder) for offer in offers):
        raise UsageError(
            f"--shortlist: none of these runs has one; regard shortlist {offers[0].folder} --data … makes it"
        )


def mounted_inspector(device: str | None, hosts: Sequence[str]) -> Callable[[Shelf], ASGIApp]:
    """The inspector over the first two runs, each loaded once more when it is looked into: what is looked at
    does not wait for what is served, nor the other way round."""

    def page(shelf: Shelf) -> ASGIApp:
        first = [offer.folder for offer in shelf.offers.values()][:2]
        return inspector_app([Inspected(folder, device) for folder in first], hosts)

    return page


def _named(given: str) -> tuple[str, Path]:
    name, equals, folder = given.partition("=")
    if not equals or "/" in name:  # the name of a folder may hold a = as well
        return Path(given).resolve().name, Path(given)
    if not name or not folder:
        raise UsageError(f"{given!r}: expected DIR or NAME=DIR")
    return name, Path(folder)


def _spoken(given: str, names: Sequence[str]) -> tuple[str, tuple[str, str]]:
    name, _, pair = given.rpartition("=")
    source, colon, target = pair.partition(":")
    if not (colon and source and target):
        raise UsageError(f"--languages {given}: expected FROM:TO, as in en:de")
    if not name and len(names) > 1:
        raise UsageError(f"--languages {given}: say of which run, as in {names[0]}={pair}")
    name = name or names[0]
    if name not in names:
        raise UsageError(f"--languages {given}: no such run{nearest(name, names)}")
    return name, (source, target)
