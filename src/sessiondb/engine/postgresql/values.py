"""Values between Python and the server: None, int, float, str and bytes, no others.

An integer is always bound as ``bigint`` and a text as ``text``, whatever their values,
so that a statement has one set of types and is prepared once. The result of an
expression of another type is read as one of the five.
"""

from __future__ import annotations

from decimal import Decimal

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.pq import Format
from psycopg.types.none import NoneDumper
from psycopg.types.numeric import (
    Float4BinaryLoader,
    Float8BinaryLoader,
    FloatBinaryDumper,
    FloatLoader,
    Int2BinaryLoader,
    Int4BinaryLoader,
    Int8BinaryLoader,
    Int8Dumper,
    IntLoader,
    NumericBinaryLoader,
    OidBinaryLoader,
)
from psycopg.types.string import (
    ByteaBinaryLoader,
    ByteaLoader,
    BytesBinaryDumper,
    TextBinaryLoader,
    TextLoader,
)

#: The types of a server that every database has.
_TYPES = psycopg.adapters.types
#: A type that is not named here is read as its bytes; in a query of a user as its text.
_TEXTS = ("text", "varchar", "bpchar", "name", '"char"', "json")
_INTEGERS = ("int2", "int4", "int8", "oid")
_FLOATS = ("float4", "float8")


class _IntegerDumper(Dumper):
    """Integers of 64 bits; raises `OverflowError` for a larger one."""

    format = Format.BINARY
    oid = _TYPES["int8"].oid

    def dump(self, obj: int) -> Buffer | None:
        return obj.to_bytes(8, "big", signed=True)


class _TextDumper(Dumper):
    """Texts; raises `UnicodeEncodeError` for one that the server cannot store."""

    format = Format.BINARY
    oid = _TYPES["text"].oid

    def dump(self, obj: str) -> Buffer | None:
        place = obj.find("\0")
        if place >= 0:
            raise UnicodeEncodeError(
                "utf-8", obj, place, place + 1, "PostgreSQL has no texts with NUL"
            )
        return obj.encode()


class _BooleanLoader(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _BooleanBinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int(bytes(data) != b"\0")


def _plain_number(number: Decimal) -> int | float:
    """Return a number as SQLite has it: an integer if it is one, else a float."""
    if number.is_finite() and number == number.to_integral_value():
        return int(number)
    return float(number)


class _NumericLoader(Loader):
    def load(self, data: Buffer) -> int | float:
        return _plain_number(Decimal(bytes(data).decode()))


class _NumericBinaryLoader(NumericBinaryLoader):
    def load(self, data: Buffer) -> int | float:  # type: ignore[override]
        return _plain_number(super().load(data))


class _JSONBBinaryLoader(TextBinaryLoader):
    def load(self, data: Buffer) -> bytes | str:
        # It begins with the version of the format.
        return super().load(bytes(data)[1:])


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(types=_TYPES)
    adapters.register_dumper(type(None), NoneDumper)
    # As text as well: the driver writes the number of rows into a FETCH.
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(int, _IntegerDumper)
    adapters.register_dumper(bool, _IntegerDumper)
    adapters.register_dumper(float, FloatBinaryDumper)
    adapters.register_dumper(str, _TextDumper)
    for kind in (bytes, bytearray, memoryview):
        adapters.register_dumper(kind, BytesBinaryDumper)

    binary: dict[str, type[Loader]] = {
        **dict.fromkeys(_TEXTS, TextBinaryLoader),
        "int2": Int2BinaryLoader,
        "int4": Int4BinaryLoader,
        "int8": Int8BinaryLoader,
        "oid": OidBinaryLoader,
        "float4": Float4BinaryLoader,
        "float8": Float8BinaryLoader,
        "numeric": _NumericBinaryLoader,
        "bool": _BooleanBinaryLoader,
        "bytea": ByteaBinaryLoader,
        "jsonb": _JSONBBinaryLoader,
    }
    textual: dict[str, type[Loader]] = {
        **dict.fromkeys(_INTEGERS, IntLoader),
        **dict.fromkeys(_FLOATS, FloatLoader),
        "numeric": _NumericLoader,
        "bool": _BooleanLoader,
        "bytea": ByteaLoader,
    }
    for loaders in (binary, textual):
        for name, loader in loaders.items():
            adapters.register_loader(name, loader)
    adapters.register_loader(0, ByteaBinaryLoader)
    adapters.register_loader(0, TextLoader)
    return adapters


#: How every connection of this engine reads and writes values.
ADAPTERS = _adapters()
