"""No search at all: where everything that can be answered is looked at, the best few are named."""

from pydantic import Field

from regard.core.errors import UsageError
from regard.search.search import Searcher, SearchSpec


class RankingSpec(SearchSpec):
    best: int = Field(1, ge=1)
    """Answers per line, the most probable first."""

    @property
    def answers(self) -> int:
        return self.best

    def build(self) -> Searcher:
        raise UsageError("a ranking names classes or words: it cannot write a sequence")
