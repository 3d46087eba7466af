"""Markers for pydantic of single values: numbers as written, keys that may be left out, no repeats."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator
from pydantic_core import PydanticCustomError, core_schema

T = TypeVar("T")


def refusal(text: str) -> PydanticCustomError:
    """Return the error of a validator whose `text` says what is wrong."""
    return PydanticCustomError("refusal", "{text}", {"text": text})


def _whole_as_integer(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unconverted(value: Any, check: Any) -> Any:
    check(value)
    return value


def _distinct(values: list[Any]) -> list[Any]:
    if any(value in values[:index] for index, value in enumerate(values)):
        raise PydanticCustomError("repeats", "a value occurs twice")
    return values


class LeftOut:
    """Marks a key that `Settings.plain` leaves out if it was not given; its attribute is then None."""


class _NotNull(LeftOut):
    """Marks such a key for which null is no value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        (kind,) = (kind for kind in get_args(source) if kind is not type(None))
        return handler.generate_schema(kind)


# An integer may be written 5.0, but Python's range() takes no float.
WHOLE = BeforeValidator(_whole_as_integer)
# Other numbers stay as they are written: 1 and 1.0 are different texts to a job.
REAL = WrapValidator(_unconverted)
# A key that may be left out; LEFT_OUT marks one that may also be null.
Maybe = Annotated[T | None, _NotNull()]
LEFT_OUT = LeftOut()
# A list without repeats.
Distinct = Annotated[list[T], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(_distinct)]
