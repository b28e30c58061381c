"""The command line as a function, as the tests of applications have it."""

from tests.apps.conftest import regard

__all__ = ["regard"]
