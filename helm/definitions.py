"""Makes a template of the chart from the definition of a kind in crds/. Called by `generate`.

As a template, and not in the folder that Helm has for definitions: from there it never upgrades.
"""

from __future__ import annotations

import re
from typing import Final

_HEADER: Final = "{{- /* Made by `make generate` from crds/; edit the models. */}}\n"
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
    """Give the text, word for word, as something that Helm renders when it is asked for."""
    body = definition.partition("\n")[2] if definition.startswith("#") else definition
    found = _NAME.search(body)
    if found is None:
        raise ValueError("a definition begins with `metadata:` and its name below; this has none")
    # What stands between braces in a description is no instruction to Helm.
    head, rest = (_quoted(part) for part in (body[: found.end()], body[found.end() :]))
    return f"{_HEADER}{{{{- if .Values.crds.enabled }}}}\n{head}{_METADATA}{rest}{{{{- end }}}}\n"


def _quoted(text: str) -> str:
    return text.replace("{{", '{{ "{{" }}')
