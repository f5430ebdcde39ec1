"""All tables of refused nests together."""

from __future__ import annotations

import refused_calls as calls
import refused_expressions as expressions
import refused_loops as loops
import refused_plans as plans
import refused_statements as statements
from refusal_cases import REFUSALS

TABLES = (loops, statements, expressions, calls, plans)  # each has added its cases
ALL = tuple(REFUSALS)
