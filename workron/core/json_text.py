"""How a value that people or jobs wrote becomes the JSON that is kept. Called by the stores.

Both dialects keep this text, and neither rewrites it: a number is given back as it came.
"""

from __future__ import annotations

import json
from typing import Any

from workron.core import errors


def worded(value: Any) -> str:
    """Word a value, or raise StoreDataError if there is no JSON of it that every store keeps."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise _refusal("has half of a surrogate pair; strings are of whole characters") from None
    except RecursionError:
        raise _refusal("is nested too deeply") from None
    except (TypeError, ValueError) as cause:
        raise _refusal(f"is no JSON: {cause}") from None
    if "\\u0000" in text.replace("\\\\", ""):
        raise _refusal("has a NUL character; leave it out or encode it")
    return text


def _refusal(what: str) -> errors.StoreDataError:
    return errors.StoreDataError(f"a value that is to be stored {what}")
