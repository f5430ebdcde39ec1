"""All tables of refused nests together."""

from __future__ import annotations

import refused_calls as calls
import refused_expressions as expressions
import refused_loops as loops
import refused_plans as plans
import refused_statements as statements
from accepted import ENDLESS, FORMERLY, RAISING
from refusal_cases import REFUSALS

TABLES = (loops, statements, expressions, calls, plans)  # each has added its cases
ALL = tuple(case for case in REFUSALS if case.name not in FORMERLY | RAISING | ENDLESS)
ACCEPTED = tuple(case for case in REFUSALS if case.name in FORMERLY)
FAILING = tuple(case for case in REFUSALS if case.name in RAISING)
