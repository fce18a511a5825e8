# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of a compilation as Python says them, made into the arguments of fp8-compile.

Only what Python alone knows is checked here: types, and regular expressions of Python that mean
something else in the compiler. fp8-compile checks the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Regex: TypeAlias = "str | re.Pattern[str]"
Pair: TypeAlias = "tuple[str, str] | tuple[str, str, int] | str"

_REGEXES = ("sites", "keep", "require", "require_attention")
# \1 is a back-reference there too; `\.` and other punctuation is a literal character.
_PYTHON_ONLY = re.compile(r"(?<!\\)(?:\\\\)*(\\[A-Za-z0]|\(\?.|[*+?}][?+](?!\]))")


def to_arguments(options: Mapping[str, Any]) -> list[str]:
    """The command-line arguments for options by name; None and False leave an option out, but for the recipe.

    Raises ValueError or TypeError, naming the option.

    >>> to_arguments({"recipe": "current", "keep": None, "first": 1, "calibrate": True, "carry": {0: 1}})
    ['--recipe=current', '--first=1', '--calibrate', '--carry=0:1']
    """
    arguments = []
    for name, value in options.items():
        if name in OF_THE_COMMAND:
            raise ValueError(f"there is no option {name}: it is one of the command line alone")
        if value is None and name != "recipe" or value is False and name not in _FALSE_IS_A_VALUE:
            continue
        flag = "--" + name.replace("_", "-")
        for text in _texts(name, value):
            arguments.append(f"{flag}={text}" if text is not None else flag)
    return arguments


#: Options for output of the command, which this package asks for itself.
OF_THE_COMMAND = (
    *("h", "help", "help_hidden", "help_list", "help_list_hidden", "version", "print_support"),
    *("o", "emit", "report", "manifest", "no_cache"),
)

#: Options whose default is true.
_FALSE_IS_A_VALUE = ("reduce_amax", "power_2_scale")


def _texts(name: str, value: Any) -> Sequence[str | None]:
    """The values after `--name=`, one for each time that the option is given; None for the name alone."""
    if name in _REGEXES:
        return [posix_regex(name, value)]
    if name == "pair":
        return [_pair(value)]
    if name == "carry":
        return _carry(value)
    if name == "site_recipe":
        items = value.items() if isinstance(value, Mapping) else None
        if items is None:
            return [value] if isinstance(value, str) else list(value)
        return [f"{posix_regex(name, pattern)}={_recipe(recipe)}" for pattern, recipe in items]
    if name in ("recipe", "fprop", "dgrad", "wgrad"):
        return [_recipe(value)]
    if value is True:
        return [None] if name not in _FALSE_IS_A_VALUE else ["true"]
    if value is False:
        return ["false"]
    if isinstance(value, (str, int, float)):
        return [str(value)]
    raise TypeError(f"{name}={value!r}: an option is text, a number, True, False or None")


def _recipe(value: Any) -> str:
    if isinstance(value, str):
        return value
    from . import recipe

    return recipe.to_text(value)


def posix_regex(name: str, value: Any) -> str:
    r"""The text of a regular expression, as the compiler reads it (POSIX extended).

    >>> posix_regex("keep", re.compile("embed|head"))
    'embed|head'
    >>> posix_regex("keep", r"h\d+")
    Traceback (most recent call last):
    ValueError: keep='h\\d+': \d is Python's; the compiler reads POSIX extended regular expressions: write [0-9]
    """
    if isinstance(value, re.Pattern):
        if value.flags & ~re.UNICODE:
            raise ValueError(f"{name}={value!r}: flags of regular expressions are not passed on; write them out, as in [Hh]ead")
        value = value.pattern
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}: a regular expression is text or a compiled re.Pattern")
    if found := _PYTHON_ONLY.search(value):
        instead = {"\\d": ": write [0-9]", "(?": ": write (…)"}.get(found[1][:2], "")
        raise ValueError(f"{name}={value!r}: {found[1]} is Python's; the compiler reads POSIX extended regular expressions{instead}")
    return value


def site_recipes(value: Any) -> list[tuple[str, str]]:
    """The pairs of pattern and recipe that the option `site_recipe` says.

    >>> site_recipes(["h0/=block", "fc=#fp8.delayed_scaling<margin = 1>"])
    [('h0/', 'block'), ('fc', '#fp8.delayed_scaling<margin = 1>')]
    """
    texts = to_arguments({"site_recipe": value})
    return [_split(text.removeprefix("--site-recipe=")) for text in texts]


def _split(text: str) -> tuple[str, str]:
    """REGEX=RECIPE at the `=` that the compiler takes: the last one before an attribute."""
    before, hash_, attribute = text.partition("=#")
    if hash_:
        return before, "#" + attribute
    pattern, _, recipe = text.rpartition("=")
    return pattern, recipe


def python_names(text: str) -> str:
    """The compiler's words with the names that options have in Python.

    >>> python_names("--amax-history-len=4 is given 2 times")
    'amax_history_len=4 is given 2 times'
    """
    return re.sub(r"(?<![\w-])--([a-z0-9][a-z0-9-]*)", lambda match: match[1].replace("-", "_"), text)


def _pair(value: Any) -> str:
    if isinstance(value, str):
        return value
    value = list(value)
    if len(value) == 1 and not isinstance(value[0], str):
        value = list(value[0])
    if len(value) not in (2, 3) or not all(isinstance(part, str) for part in value[:2]):
        raise ValueError(f"pair={value!r}: a program has one pair, (forward, backward) or (forward, backward, K)")
    return ":".join(str(part) for part in value)


def _carry(value: Any) -> list[str | None]:
    if isinstance(value, str):
        return [value]
    pairs: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, Mapping) else value
    text = ",".join(f"{argument}:{result}" for argument, result in pairs)
    return [text] if text else []
