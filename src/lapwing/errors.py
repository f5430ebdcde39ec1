"""The errors Lapwing raises, one class per kind of trouble.

Every message says where, what was found, what was expected and what to do.
"""

from __future__ import annotations


class LapwingError(Exception):
    """Base of every error Lapwing raises on purpose; its text is meant for the user."""


class RefusedError(LapwingError):
    """A nest, its arguments or a command line that Lapwing does not accept; nothing has run yet.

    The command line exits with status 2.
    """


class BuildError(LapwingError):
    """A compiler is missing, or it rejected or could not write what it was given."""


class RunError(LapwingError):
    """A run that started and could not finish; arrays passed in are as they were before."""
