"""What filters of a convolution look at together, and how many there are."""

from pydantic import Field

from regard.core.spec import Spec


class Filters(Spec):
    """Filters of one width."""

    width: int = Field(gt=0)
    """Letters or tokens in a row that a filter looks at together."""
    count: int = Field(gt=0)
    """How many filters, and so values, there are."""
