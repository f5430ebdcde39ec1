"""Products that a compiler fuses with sums although -ffp-contract=off says not to: found in the machine code that it made.

gcc 12 does so where it vectorises sums and differences that are stored side by side (``a*c - b*d`` beside ``a*d + b*c``: plane
rotations, products of complex numbers). On x86 it then takes instructions that nothing else of ours can become: vfmaddsub and
vfmsubadd. Such code is compiled again, with less vectorising (``exact_flags``).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

_OPCODE = rb"[\x96\x97\xa6\xa7\xb6\xb7]"
_VEX = rb"\xc4[\x02\x22\x42\x62\x82\xa2\xc2\xe2][\x00-\xff]" + _OPCODE
_EVEX = rb"\x62[\x00-\xff]{3}" + _OPCODE
_LIKELY = re.compile(_VEX + b"|" + _EVEX, re.DOTALL)
_MNEMONIC = re.compile(rb"\bvfm(addsub|subadd)\d")


@cache
def contracts(library: Path) -> bool:
    """Whether a library, or an object file, has instructions that round a product and the sum that it is part of but once."""
    if _LIKELY.search(library.read_bytes()) is None:
        return False
    objdump = shutil.which("objdump")
    if objdump is None:
        return True  # the bytes may mean something else; less vectorising is right in any case
    shown = subprocess.run([objdump, "-d", "--no-show-raw-insn", library], capture_output=True, check=False)
    return shown.returncode != 0 or _MNEMONIC.search(shown.stdout) is not None
