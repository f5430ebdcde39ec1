"""Declarations of MPI for machines that have no mpi.h: enough to read a program by, not to compile it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lapwing.overlap.mpi.names import CONSTANTS, TYPE_SIZES
from lapwing.overlap.mpi.table import calls
from lapwing.temporary import scratch_until_exit

GUARD = "LAPWING_MPI_H"  # defined where this header is read

_HANDLES = "Comm Datatype Errhandler File Group Info Message Op Request Session Win".split()
_OPERATIONS = "MAX MIN SUM PROD LAND BAND LOR BOR LXOR BXOR MAXLOC MINLOC REPLACE NO_OP OP_NULL".split()
_PAIRS = "FLOAT_INT DOUBLE_INT LONG_INT SHORT_INT LONG_DOUBLE_INT LB UB DATATYPE_NULL".split()
_POINTERS = {
    "MPI_BOTTOM": "void",
    "MPI_IN_PLACE": "void",
    "MPI_STATUS_IGNORE": "MPI_Status",
    "MPI_STATUSES_IGNORE": "MPI_Status",
    "MPI_ERRCODES_IGNORE": "int",
    "MPI_UNWEIGHTED": "int",
    "MPI_WEIGHTS_EMPTY": "int",
    "MPI_ARGV_NULL": "char *",
    "MPI_ARGVS_NULL": "char **",
}
_MEMBERS = frozenset(("MPI_SOURCE", "MPI_TAG", "MPI_ERROR"))  # of MPI_Status; constants in Fortran only
_CONSTANT_TYPES = {
    **dict.fromkeys(TYPE_SIZES, "MPI_Datatype"),
    **{f"MPI_{name}": "MPI_Datatype" for name in _PAIRS},
    **{f"MPI_{name}": "MPI_Op" for name in _OPERATIONS},
    **{f"MPI_COMM_{name}": "MPI_Comm" for name in ("WORLD", "SELF", "NULL")},
    **{f"MPI_{name.upper()}_NULL": f"MPI_{name}" for name in _HANDLES if name not in ("Comm", "Datatype", "Op")},
}


@cache
def folder() -> Path:
    """A folder that holds such an mpi.h; it goes when the process ends."""
    made = scratch_until_exit("lapwing-mpi-")
    (made / "mpi.h").write_text(header(), encoding="ascii")
    return made


def header() -> str:
    """The text of the mpi.h: every call and constant Lapwing knows, parameters unchecked."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f"#ifndef {GUARD}"
    yield f"#define {GUARD}"
    yield "#ifdef __cplusplus"
    yield 'extern "C" {'
    yield "#define MPI_ANY_PARAMETERS ..."
    yield "#else"
    yield "#define MPI_ANY_PARAMETERS"
    yield "#endif"
    yield from (f"typedef int MPI_{name};" for name in _HANDLES)
    yield "typedef long MPI_Aint;"
    yield "typedef long long MPI_Offset;"
    yield "typedef long long MPI_Count;"
    yield "typedef int MPI_Fint;"
    yield "typedef struct { int MPI_SOURCE, MPI_TAG, MPI_ERROR; long long hidden; } MPI_Status;"
    yield "typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);"
    # Numbers from 1024 on: large enough for the lengths among them, and no two alike.
    for number, name in enumerate(sorted(CONSTANTS - _MEMBERS), start=1024):
        yield f"#define {name} {_value(name, number)}"
    for name in sorted({call.name for call in calls().values()}):
        result = {"MPI_Wtime": "double", "MPI_Wtick": "double"}.get(name, "int")
        result = "MPI_Aint" if name.startswith("MPI_Aint_") else result
        yield f"{result} {name}(MPI_ANY_PARAMETERS);"
        yield f"{result} P{name}(MPI_ANY_PARAMETERS);"
    yield "#ifdef __cplusplus"
    yield "}"
    yield "#endif"
    yield "#endif"


def _value(name: str, number: int) -> str:
    if name in _POINTERS:
        return f"(({_POINTERS[name]} *){number})"
    if name in _CONSTANT_TYPES:
        return f"(({_CONSTANT_TYPES[name]}){number})"
    return {"MPI_VERSION": "3", "MPI_SUBVERSION": "1"}.get(name, str(number))
