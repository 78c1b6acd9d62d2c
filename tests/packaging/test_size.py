"""Functions of the product are short, and its modules are neither fragments nor too long."""

import ast
import statistics

from tests.packaging import product

_LONGEST_BODY = 50
_USUAL_BODY = 20
_SHARE_OF_USUAL_BODIES = 0.9
_LONGEST_MODULE = 500
_SHORTEST_MEDIAN_MODULE = 130
"""Below that, a concept is spread over too many files."""


def _bodies(module: str, text: str) -> dict[str, int]:
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {f"{module}:{one.lineno} {one.name}": _lines_without_docstring(one) for one in functions}


def _lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    statements = function.body[1:] if ast.get_docstring(function) else function.body
    if not statements:
        return 0
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1


def _all_bodies() -> dict[str, int]:
    return {
        where: lines
        for module, text in product.modules().items()
        for where, lines in _bodies(module, text).items()
    }


def _module_lengths() -> dict[str, int]:
    return {name: len(text.splitlines()) for name, text in product.modules().items()}


def test_body_is_counted_without_its_docstring_and_signature() -> None:
    text = (
        'def f(\n    a,\n    b,\n):\n    """One."""\n    x = (\n        a,\n    )\n    return x\n'
    )
    assert _bodies("m.py", text) == {"m.py:1 f": 4}


def test_body_is_never_longer_than_the_limit() -> None:
    assert {at: lines for at, lines in _all_bodies().items() if lines > _LONGEST_BODY} == {}


def test_body_is_short_in_nine_of_ten_functions() -> None:
    bodies = _all_bodies()
    longer = {at: lines for at, lines in bodies.items() if lines > _USUAL_BODY}
    assert len(longer) <= (1 - _SHARE_OF_USUAL_BODIES) * len(bodies), longer


def test_module_is_never_longer_than_the_limit() -> None:
    lengths = _module_lengths()
    assert {name: lines for name, lines in lengths.items() if lines > _LONGEST_MODULE} == {}


def test_median_module_is_not_a_fragment() -> None:
    lengths = [lines for name, lines in _module_lengths().items() if "__init__" not in name]
    assert statistics.median(lengths) >= _SHORTEST_MEDIAN_MODULE
