"""A column file in, the same file with one column more out: tags beside the words they belong to."""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from regard.apps.session import Run
from regard.core.errors import UsageError
from regard.data.column_files import ColumnBlock, read_column_blocks
from regard.data.tagged import TaggedSpec


def blocks_of(run: Run, file: Path) -> Iterator[ColumnBlock]:
    if run.spec.data.kind() != "tagged":
        raise UsageError(f"--columns: {run.path} tags no words, so there is no column to add")
    return read_column_blocks(file, cast(TaggedSpec, run.spec.data).columns)


def with_tags(run: Run, blocks: Iterable[ColumnBlock]) -> Iterator[list[str]]:
    """The lines of every sentence, in order; memory does not grow with the file."""
    waiting = deque[ColumnBlock]()

    def texts() -> Iterator[str]:
        for block in blocks:
            waiting.append(block)
            yield block.text

    for answer in run.stream(texts()):
        tags = answer.candidates[0].pieces if answer.candidates else []
        yield waiting.popleft().with_column(tags)
