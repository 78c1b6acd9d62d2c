"""Turns the definition of a kind in crds/ into a template of the chart.

Helm never upgrades the definitions in a chart's own `crds` folder, so they are templates instead.
"""

from __future__ import annotations

import re
from typing import Final

_HEADER: Final = "{{- /* Written by `make generate` from crds/; edit the models. */}}\n"
_NAME: Final = re.compile(r"^metadata:\n  name: \S+\n", re.MULTILINE)
_METADATA: Final = """\
  labels:
    {{- include "workron.labels" (dict "root" . "component" "controller") | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
"""


def template(definition: str) -> str:
    """Return a template that renders to this definition, with the labels of the release."""
    body = definition.partition("\n")[2] if definition.startswith("#") else definition
    found = _NAME.search(body)
    if found is None:
        raise ValueError("this definition does not begin with `metadata:` and a name")
    # Braces in a description are text, not a template expression.
    head, rest = (_quoted(part) for part in (body[: found.end()], body[found.end() :]))
    return f"{_HEADER}{{{{- if .Values.crds.enabled }}}}\n{head}{_METADATA}{rest}{{{{- end }}}}\n"


def _quoted(text: str) -> str:
    return text.replace("{{", '{{ "{{" }}')
