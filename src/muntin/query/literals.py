"""Numbers as Spark reads them.

In: the digits a user wrote, with the minus before them and the suffix behind. Out: `tree.Literal`.
Convention: 1 is INT, 3000000000 BIGINT, longer is DECIMAL(p,0); 1.5 is DECIMAL(2,1), 1e3 DOUBLE; L, S, Y, D, F and BD behind the
digits say the type. What cannot be read is a `TypeMismatch`; who knows the position makes it a `QueryError`.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from muntin import schema
from muntin.errors import Span, TypeMismatch
from muntin.expression.numeric import nearest_float32
from muntin.expression.tree import Literal
from muntin.schema import Type

_NUMBER = re.compile(r"(?P<digits>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?P<exponent>e[+-]?[0-9]+)?(?P<suffix>bd|[lsydf])?", re.IGNORECASE)
_INTEGRAL = {"L": schema.BIGINT, "S": schema.SMALLINT, "Y": schema.TINYINT}


def is_number(text: str) -> bool:
    """Whether a text is digits, perhaps with a point, an exponent, a suffix such as L, or a minus before them."""
    return _NUMBER.fullmatch(text) is not None


def number(text: str, at: Span | None = None) -> Literal:
    """The constant that a number stands for.

    >>> [str(number(text).type) for text in ("1", "3000000000", "1.50", "1e3", "5L")]
    ['int', 'bigint', 'decimal(3,2)', 'double', 'bigint']
    """
    parts = _NUMBER.fullmatch(text)
    if parts is None:
        raise TypeMismatch("a number is written as in 1, 1.5 or 1e3", values=text, way_out="write it in digits")
    written, suffix = parts["digits"] + (parts["exponent"] or ""), (parts["suffix"] or "").upper()
    if suffix in _INTEGRAL:
        return _integral(written, (_INTEGRAL[suffix],), at) or _refuse(text, _INTEGRAL[suffix])
    if suffix == "F":
        return _floating(written, schema.FLOAT, at)
    if suffix == "D" or (parts["exponent"] and not suffix):
        return _floating(written, schema.DOUBLE, at)
    plain = _integral(written, (schema.INT, schema.BIGINT), at) if not suffix else None
    return plain or _decimal(written, at)


def _integral(written: str, types: tuple[Type, ...], at: Span | None) -> Literal | None:
    """The number in the first of the types that holds it. (Python converts no more than 4,300 digits.)"""
    if not written.lstrip("-").isdigit() or len(written) > schema.MAX_PRECISION:
        return None
    value = int(written)
    bounds = {type_: 1 << (schema.INTEGRAL_BITS[type_.kind] - 1) for type_ in types}
    return next((Literal(value, type_, at) for type_, bound in bounds.items() if -bound <= value < bound), None)


def _floating(written: str, type_: Type, at: Span | None) -> Literal:
    double = float(written)
    vanished = double == 0 and re.search("[1-9]", re.split("[eE]", written)[0])  # its exact fraction may have a billion digits
    value = double if type_ == schema.DOUBLE or vanished or not math.isfinite(double) else nearest_float32(Decimal(written))
    return Literal(value, type_, at) if math.isfinite(value) else _refuse(written, type_)


def _decimal(written: str, at: Span | None) -> Literal:
    value = Decimal(written)
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    if precision > schema.MAX_PRECISION:
        return _refuse(written, schema.decimal(schema.MAX_PRECISION, 0))
    return Literal(value if scale else Decimal(int(value)), schema.decimal(precision, scale), at)


def _refuse(text: str, type_: Type) -> Literal:
    shown = text if len(text) <= 60 else f"{text[:57]}…"
    raise TypeMismatch(f"a number fits into its type, {str(type_).upper()}", values=shown, way_out="write one that fits, or another suffix")
