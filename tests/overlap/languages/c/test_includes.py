"""Where a C file can take declarations of Lapwing's."""

from __future__ import annotations

import pytest

from lapwing.overlap.languages.c.parsing.includes import after_includes

PLACES = {
    "after the last": "#include <a.h>\n#include <mpi.h>\n@\nvoid f(void) { ! }\n",
    "not after one behind the function": '#include <mpi.h>\n@void f(void) { ! }\n#include "late.h"\n',
    "in no comment": "#include <mpi.h>\n@/*\n#include <a.h>\n*/\nvoid f(void) { ! }\n",
    "past a comment of its own": "#include <mpi.h> /* for\nmessages */\n@void f(void) { ! }\n",
    "in no table": '#include <mpi.h>\n@int t[] = {\n#include "t.inc"\n};\nvoid f(void) { ! }\n',
    "in no function": '#include <mpi.h>\n@void g(void) {\n#include "g.inc"\n}\nvoid f(void) { ! }\n',
    "past conditional compilation": "#include <a.h>\n#ifdef P\n#include <mpi.h>\n#endif\n@void f(void) { ! }\n",
    "past it, with others": "#ifdef P\n#include <mpi.h>\n#else\n#include <b.h>\n#endif\n@void f(void) { ! }\n",
    "inside conditional compilation": "#ifdef P\n#include <mpi.h>\n@void f(void) { ! }\n#endif\n",
    "inside two": "#ifdef P\n#ifdef Q\n#include <mpi.h>\n#endif\n@void f(void) { ! }\n#endif\n",
    "in the same branch": "#include <mpi.h>\n@#ifdef P\n#include <a.h>\n#else\nvoid f(void) { ! }\n#endif\n",
    "nothing included": "@void f(void) { ! }\n",
    "a last line without an end": "void f(void);\n#include <mpi.h>@",
    "what only C++ sees": '#ifdef __cplusplus\nextern "C" {\n#endif\n#include <mpi.h>\n@void f(void) { ! }\n'
    "#ifdef __cplusplus\n}\n#endif\n",
}
CPP_PLACES = {
    "past C's linkage": 'extern "C" {\n#include <mpi.h>\n}\n@void f() { ! }\n',
    "not inside a namespace": "#include <mpi.h>\n@namespace n {\n#include <a.h>\nvoid f() { ! }\n}\n",
    "past a raw string": '#include <mpi.h>\n@auto s = R"(\n#include <a.h>\n{)";\nvoid f() { ! }\n',
}


@pytest.mark.parametrize("name", [*PLACES, *CPP_PLACES])
def test_place(name: str) -> None:
    text = PLACES.get(name) or CPP_PLACES[name]
    place = text.index("@")
    text = text.replace("@", "")
    use = text.find("!")
    assert after_includes(text.encode(), use if use >= 0 else len(text), name in CPP_PLACES) == place
