"""Profiles: the store and the namespace that commands use when no flag and no variable names them.

They are in `config.toml`:

    profile = "laptop"

    [profiles.laptop]
    store = "sqlite:////var/lib/jobs.db"

    [profiles.team]
    store = "postgresql://me@db/jobs"
    namespace = "team"

For each of the two wins the flag, then the variable (WORKRON_STORE), the profile, the default.
The profile is that of --profile, else of WORKRON_PROFILE, else the one that the file names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperOption

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping


VARIABLE: Final = "WORKRON_PROFILE"
_FIELDS: Final = frozenset({"store", "namespace"})
_FORM: Final = 'write `[profiles.NAME]`, and below it `store = "URL"` and `namespace = "NAME"`'


class ProfileNamespace(str):
    """A namespace for manifests that set none; others keep theirs."""

    __slots__ = ()


def config_file() -> Path:
    """Return the path of the file with the profiles."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME", "/"), ".config")
    return Path(home) / "workron" / "config.toml"


def add_option(command: Any) -> None:
    """Add --profile to a command that has a store or a namespace."""
    if {one.name for one in command.params} & _FIELDS:
        last = max(at for at, one in enumerate(command.params) if one.name in _FIELDS)
        command.params.insert(last + 1, _option(command))


def _option(command: Any) -> TyperOption:
    names = {one.name for one in command.params} & _FIELDS
    # The namespace of a worker comes from its token.
    used = names - {"namespace"} if command.name == "worker" else names

    def apply(context: typer.Context, _: object, name: str | None) -> None:
        if not context.resilient_parsing:
            values = read(name)
            context.default_map = {key: values[key] for key in used if key in values}

    return TyperOption(
        param_decls=["--profile"],
        type=str,
        metavar="NAME",
        envvar=VARIABLE,
        show_envvar=True,
        is_eager=True,
        expose_value=False,
        callback=apply,
        help="Profile with the store and the namespace.",
    )


def read(name: str | None) -> Mapping[str, str]:
    """Return the values of a profile, of the file's own if no name is given; {} if there is none.

    InputError if the file is wrong or does not have the profile.
    """
    file = config_file()
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        # A service may run as a user that cannot read the home folder.
        if name:
            raise errors.InputError(f"no profile {name!r}: {file}: {error.strerror}") from None
        return {}
    except UnicodeDecodeError:
        raise errors.InputError(f"{file} is not text in UTF-8; {_FORM}") from None
    return _select(file, _parse(file, text), name)


def _parse(file: Path, text: str) -> Mapping[str, Any]:
    import tomllib

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise errors.InputError(f"{file}: {error}; {_FORM}") from None
    profiles = content.get("profiles", {})
    if unknown := sorted(content.keys() - {"profile", "profiles"}):
        raise errors.InputError(f"{file}: unknown key {unknown[0]!r}; {_FORM}")
    if not isinstance(profiles, dict) or not all(map(_is_profile, profiles.values())):
        raise errors.InputError(f"{file}: a profile has texts for store and namespace; {_FORM}")
    return content


def _is_profile(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= _FIELDS
        and all(isinstance(one, str) for one in value.values())
    )


def _select(file: Path, content: Mapping[str, Any], name: str | None) -> Mapping[str, str]:
    profiles = content.get("profiles", {})
    wanted = name or content.get("profile")
    if wanted is None:
        return {}
    if wanted not in profiles:
        known = f"it has {', '.join(profiles)}" if profiles else "it has no profiles"
        raise errors.InputError(f"{file} has no profile {wanted!r}; {known}")
    values = dict(profiles[wanted])
    if "namespace" in values:
        values["namespace"] = ProfileNamespace(values["namespace"])
    return values
