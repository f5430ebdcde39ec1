"""C identifiers for the names of a nest: the user's own wherever C allows."""

from __future__ import annotations

_RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false
    main asm typeof box tile trap out in lo hi INFINITY NAN isnan isinf isfinite floor ceil trunc fabs sqrt exp log sin
    cos tan pow y0 y1 yn j0 j1 jn gamma signgam div abs labs index""".split()
)


class Names:
    """Hands out C identifiers, the same one for the same key, never one twice."""

    def __init__(self) -> None:
        self._given: dict[object, str] = {}
        self._used: set[str] = set(_RESERVED)

    def get(self, key: object, wanted: str) -> str:
        if key not in self._given:
            self._given[key] = self._fresh(wanted)
        return self._given[key]

    def _fresh(self, wanted: str) -> str:
        clean = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in wanted).strip("_") or "v"
        if clean[0].isdigit() or clean.startswith("lw_"):
            clean = "v_" + clean
        name, number = clean, 2
        while name in self._used:
            name, number = f"{clean}_{number}", number + 1
        self._used.add(name)
        return name
