"""Arrays that change places in a loop: a number says which array each name stands for, and what reads or writes them is there
once for each such order.

    for t in range(steps):                   order = 0
        v[i] = u[i - 1]                      for t in range(steps):
        u, v = v, u                              if order == 0:
                                                     v[i] = u[i - 1]
                                                 else:
                                                     u[i] = v[i - 1]
                                                 order = 1 if order == 0 else 0

So every name stands for one array (modulo variable expansion; Lam, PLDI 1988; no loop is unrolled for it, since a number is
kept): nobody has to find out which arrays are the same, and compilers know them apart.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lapwing.loopnest.normalisation.names import all_names, fresh_name
from lapwing.syntax_places import placed

MOST_ORDERS = 4

_Order = tuple[str, ...]  # the arrays that the names stand for, as these are called before the loop


class NotRewrittenError(Exception):
    """A loop has statements on whole arrays that nothing is made of."""


@dataclass(frozen=True)
class Exchanged:
    """A loop in which no arrays change places. names: those that did; orders: what they stand for after the loop, by the number
    that the variable ``order`` has then; none where nothing changed places. left_out: names that only held an array meanwhile."""

    loop: ast.For | ast.While
    names: tuple[str, ...] = ()
    orders: tuple[_Order, ...] = ()
    order: str = ""
    left_out: frozenset[str] = frozenset()


def with_orders(loop: ast.For | ast.While, taken: set[str]) -> Exchanged:
    """The loop without exchanges. taken: names that are not free; more are added.

    Raises NotRewrittenError where a name that changes places is given something else, too, or there are too many orders.
    """
    loop = copy.deepcopy(loop)
    arrays = _subscripted(loop)
    exchanges: dict[int, dict[str, str]] = {}
    thirds: set[str] = set()
    for block in _blocks(loop):
        exchanges |= {id(s): e for s, e in _exchanges_in(block, arrays, thirds)}
    if not exchanges:
        return Exchanged(loop)
    names = tuple(dict.fromkeys(target for exchange in exchanges.values() for target in exchange))
    orders = [names]
    for order in orders:
        for exchange in exchanges.values():
            if (after := _after(order, exchange, names)) not in orders:
                orders.append(after)
        if len(orders) > MOST_ORDERS:
            raise NotRewrittenError
    variable = fresh_name("order", taken)
    rewriting = _Rewriting(names, orders, variable, exchanges)
    if isinstance(loop, ast.While) and rewriting.mentions(loop.test):
        raise NotRewrittenError
    loop.body, loop.orelse = rewriting.block(loop.body), rewriting.block(loop.orelse)
    left = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if left & set(names) or thirds & all_names(loop):
        raise NotRewrittenError
    return Exchanged(loop, names, tuple(orders), variable, frozenset(thirds))


def exchanged_at_the_end(loop: ast.For | ast.While) -> tuple[list[ast.stmt], tuple[_Order, ...]]:
    """The body of a loop without the exchange that it ends with, and what the names stand for in one iteration after the other
    until they are as they were: first themselves. Nothing of the loop is kept.

    Raises NotRewrittenError where arrays change places elsewhere, or in too many orders.
    """
    found = [*_exchanges_in(loop.body, _subscripted(loop), set())]
    if not found:
        return loop.body, ()
    if len(found) > 1 or loop.body[-1] is not found[0][0]:
        raise NotRewrittenError
    names = tuple(found[0][1])
    orders = [names]
    while (after := _after(orders[-1], found[0][1], names)) != names:
        orders.append(after)
        if len(orders) > MOST_ORDERS:
            raise NotRewrittenError
    return loop.body[:-1], tuple(orders)


def _after(order: _Order, exchange: Mapping[str, str], names: _Order) -> _Order:
    before = dict(zip(names, order, strict=True))
    return tuple(before[exchange.get(name, name)] for name in names)


def _subscripted(loop: ast.AST) -> set[str]:
    """The names of arrays whose elements a loop reads or writes."""
    return {n.value.id for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)}


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """All blocks of loops and conditions."""
    for node in ast.walk(statement):
        if isinstance(node, ast.For | ast.While | ast.If):
            yield node.body
            yield node.orelse


def _exchanges_in(
    block: list[ast.stmt], arrays: set[str], thirds: set[str]
) -> Iterator[tuple[ast.stmt, dict[str, str]]]:
    """The statements of a block that exchange arrays, each with the name whose array each target takes. ``t = u``, ``u = v``,
    ``v = t`` become the first of them alone, and the name t is added to thirds."""
    for place, statement in enumerate(block):
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                exchange = dict(zip(_names(targets), _names(values), strict=False))
            case ast.Assign(targets=[ast.Name(id=third)], value=ast.Name(id=held)) if held in arrays:
                exchange = _by_a_third(block, place)
                thirds |= {third} if exchange else set()
            case _:
                continue
        if exchange and exchange.keys() <= arrays and exchange.keys() == set(exchange.values()):
            yield statement, exchange


def _names(nodes: Sequence[ast.expr]) -> list[str]:
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    return names if len(names) == len(nodes) == len(set(names)) else []


def _by_a_third(block: list[ast.stmt], place: int) -> dict[str, str]:
    """The exchange that begins there with ``t = u``, whose other statements are taken out; none where it is none."""
    moves: list[tuple[str, str]] = []
    for statement in block[place:]:
        match statement:
            case ast.Assign(targets=[ast.Name(id=to)], value=ast.Name(id=of)):
                moves.append((to, of))
            case _:
                break
        if len(moves) > 1 and moves[-1][1] == moves[0][0]:
            break
    (third, _), *others = moves
    chain = all(of == before for (_, before), (of, _) in zip(moves, others, strict=False))
    if len(moves) < 3 or not chain or moves[-1][1] != third:
        return {}
    del block[place + 1 : place + len(moves)]
    return {to: moves[0][1] if of == third else of for to, of in others}


class _Rewriting:
    def __init__(
        self, names: _Order, orders: Sequence[_Order], variable: str, exchanges: Mapping[int, Mapping[str, str]]
    ) -> None:
        self.names, self.orders, self.variable, self.exchanges = names, orders, variable, exchanges

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        alike: list[ast.stmt] = []  # statements one after the other in which no arrays change places
        for statement in statements:
            if (exchange := self.exchanges.get(id(statement))) is not None:
                done += [*self._in_every_order(alike), self._exchange(exchange, statement)]
            elif any(id(node) in self.exchanges for node in ast.walk(statement)):
                done += [*self._in_every_order(alike), self._structured(statement)]
            else:
                alike.append(statement)
                continue
            alike = []
        return [*done, *self._in_every_order(alike)]

    def mentions(self, node: ast.AST) -> bool:
        return not all_names(node).isdisjoint(self.names)

    def _structured(self, statement: ast.stmt) -> ast.stmt:
        match statement:
            case ast.For():
                heads: list[ast.expr] = [statement.target, statement.iter]
            case ast.While() | ast.If():
                heads = [statement.test]
            case _:
                raise NotRewrittenError
        if any(map(self.mentions, heads)):
            raise NotRewrittenError
        statement.body, statement.orelse = self.block(statement.body), self.block(statement.orelse)
        return statement

    def _exchange(self, exchange: Mapping[str, str], where: ast.stmt) -> ast.stmt:
        """``order = 1 if order == 0 else 0``"""
        after = [self.orders.index(_after(order, exchange, self.names)) for order in self.orders]
        value: ast.expr = ast.Constant(after[-1])
        for number in range(len(after) - 2, -1, -1):
            value = ast.IfExp(self._is(number), ast.Constant(after[number]), value)
        return placed(where, ast.Assign([ast.Name(self.variable, ast.Store())], value), with_end=True)

    def _in_every_order(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        of_arrays = [k for k, statement in enumerate(statements) if self.mentions(statement)]
        if not of_arrays:
            return statements
        first, last = of_arrays[0], of_arrays[-1] + 1
        inner = statements[first:last]
        *others, otherwise = [_renamed(inner, dict(zip(self.names, order, strict=True))) for order in self.orders]
        for number, way in reversed([*enumerate(others)]):
            otherwise = [placed(inner[0], ast.If(self._is(number), way, otherwise), with_end=True)]
        return [*statements[:first], *otherwise, *statements[last:]]

    def _is(self, number: int) -> ast.expr:
        return ast.Compare(ast.Name(self.variable, ast.Load()), [ast.Eq()], [ast.Constant(number)])


def _renamed(statements: Sequence[ast.stmt], names: Mapping[str, str]) -> list[ast.stmt]:
    copies = copy.deepcopy([*statements])
    for node in (node for statement in copies for node in ast.walk(statement)):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return copies
