"""A punctuator's state as JSON and back, for checkpoints.

In: a `Punctuator`. Out: a dictionary of numbers, texts and lists; and the punctuator as it was.
Convention: what a stream was declared with is not recorded; it is given again. Mappings by sub-stream become lists of pairs.
Not supported: sub-streams named by anything but strings, whole numbers, booleans and NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from muntin.disorder.observation import Key, Punctuations
from muntin.disorder.punctuator import Counts, Punctuator
from muntin.errors import Refusal


def record(punctuator: Punctuator) -> dict[str, Any]:
    clock, made = punctuator.clock, punctuator.punctuations
    return {
        "clock": {"now": clock.now, "read": clock.read, "jumps": clock.jumps},
        "heard": _plain(punctuator.heard),
        "overall": made.overall,
        "of": _plain(made.of),
        "counts": asdict(punctuator.counts),
        "makers": [{name: _plain(getattr(maker, name)) for name in maker.state} for maker in punctuator.makers],
    }


def restored(punctuator: Punctuator, recorded: Mapping[str, Any]) -> Punctuator:
    """A punctuator as it was declared, in the state that was recorded."""
    if len(recorded["makers"]) != len(punctuator.makers):
        raise Refusal(
            "a punctuator is restored as it was declared",
            values=f"{len(punctuator.makers)} makers, {len(recorded['makers'])} recorded",
            way_out="declare the stream as it was, or begin with a new checkpoint",
        )
    makers = tuple(
        replace(maker, **{name: _restored(getattr(maker, name), state[name]) for name in maker.state})  # type: ignore[type-var]
        for maker, state in zip(punctuator.makers, recorded["makers"], strict=True)
    )
    return replace(
        punctuator,
        makers=makers,
        clock=replace(punctuator.clock, **recorded["clock"]),
        heard=_restored({}, recorded["heard"]),
        punctuations=Punctuations(recorded["overall"], _restored({}, recorded["of"])),
        counts=Counts(**recorded["counts"]),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[_plain_key(key), number] for key, number in value.items()]
    return [list(pair) for pair in value] if isinstance(value, tuple) else value


def _plain_key(key: Key) -> list[Any]:
    for part in key:
        if not isinstance(part, str | int | None):
            law = "a sub-stream is named by strings, whole numbers, booleans and NULL"
            raise Refusal(law, values=repr(part), way_out="divide the stream by another column")
    return list(key)


def _restored(like: Any, value: Any) -> Any:
    if isinstance(like, Mapping):
        return {tuple(key): number for key, number in value}
    return tuple(tuple(pair) for pair in value) if isinstance(like, tuple) else value
