"""Macros that compilers define of their own accord: no source, and nothing that they are given, says whether they do."""

from __future__ import annotations

import re

_PREDEFINED = re.compile(
    r"__\w+__|__has_\w+|_OPENMP|_OPENACC|__cplusplus|_\w+_SOURCE|_LP64|_LANGUAGE_FORTRAN|linux|unix|i386"
    # compilers that name themselves without underscores at the end
    r"|__(?:INTEL(?:_\w+)?|PGI\w*|NVCOMPILER\w*|FLANG\w*|flang\w*|ibmx\w+|xl[cC]|xlf|SUNPRO_\w+)|_CRAY\w*|_SX"
)


def is_predefined(name: str) -> bool:
    """Whether a macro is one that a compiler may define, and another one, or the same with other flags, may not."""
    return _PREDEFINED.fullmatch(name) is not None
