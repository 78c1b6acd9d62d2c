"""Plain scalars on which YAML readers disagree, and fields to write them into."""

from collections.abc import Mapping
from typing import Final

SCALARS: Final = """
y Y n N yes Yes YES yEs no No NO on On ON off Off OFF true True TRUE tRue false False FALSE
~ null Null NULL nUll
0 00 +0 -0 1 +1 08 010 0777 0o17 0O17 0o8 017 0xf 0XF 0x1F 0xg 0b11 0B11 0b2 0x 0b 0o
1_000 1__000 _1 1_ 0x_1 9223372036854775807 -9223372036854775808
.5 -.5 +.5 5. .5_0 .5_ 1.0 1.5 1.10 1_0.5_0 1e3 1E3 1e+3 1e-3 .1e3 1.e3 1e21 1e400 .e1 1e 1e3.5
12:30:00 1:1 190:20:30.15 2001-12-14 2015-1-1 2001-12-14T21:59:43Z 2001-12-14T21:59:43.10-05:00
. + .. = << 1,000 1-1 --1 1.2.3 v1 3s 1h30m 10Gi 100m Infinity inf NaN nan .iNf
""".split()  # noqa: SIM905 - a table is easier to read

OUT_OF_RANGE: Final = (".inf", "-.Inf", ".nan", "9223372036854775808", "0xFFFFFFFFFFFFFFFF")
"""Numbers that JSON does not have, or that exceed 64 bits."""

FIELDS: Final[Mapping[str, str]] = {
    "text": "argv:\n  - x\n  - {}",
    "integer": "command: x\n  outputLimitBytes: {}",
    "number": "command: x\n  backoff:\n    factor: {}",
    "boolean": "command: x\n  suspend: {}",
    "duration": "command: x\n  timeout: {}",
    "time": "command: x\n  startAfter: {}",
}


def job(field: str, scalar: str, name: str = "a") -> str:
    """Write a Job with the scalar in a field of this type."""
    spec = FIELDS[field].format(scalar)
    return (
        f"apiVersion: workron.dev/v1alpha1\nkind: Job\nmetadata: {{name: {name}}}\n"
        f"spec:\n  {spec}\n"
    )


def workflow(scalars: list[str]) -> str:
    """Write a Workflow with an array of the scalars."""
    items = "".join(f"    - {scalar}\n" for scalar in scalars)
    return (
        "apiVersion: workron.dev/v1alpha1\nkind: Workflow\nmetadata: {name: a}\n"
        f"spec:\n  tasks:\n  - name: a\n    command: x\n    items:\n{items}"
    )
