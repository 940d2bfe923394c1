"""A training sample of tito, as numpy arrays and plain values. Shapes and dtypes are given with each field; ``n`` is the number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens ``[start, end)`` of one kind. ``reason`` of an action is ``trained`` or why it is masked."""

    start: int
    end: int
    kind: str
    turn: int
    reason: str


@dataclass(frozen=True, slots=True)
class Turn:
    """How one call of the sample was sampled. ``None`` means that the record does not say."""

    turn: int
    lane: str
    finish_reason: str
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    logprob_mode: str
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class VersionSpan:
    """Sampled tokens ``[start, end)`` that one weight version made. ``number`` is the oldest version that it can be."""

    start: int
    end: int
    turn: int
    version: str
    number: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One sample: a token line with its mask, log probabilities and credit.

    ``logprobs[i]`` is log pi(``tokens[i]`` | ``tokens[:i]``), unshifted: a model's logits at ``i - 1`` predict token ``i``.
    It is 0.0 where nothing was sampled. ``loss_mask[i]`` is true only where ``tokens[i]`` was sampled, in exactly this context.
    """

    run_id: str
    group_id: str
    trial_id: str
    sample_index: int
    tokens: Int32
    """int32, (n,)"""
    loss_mask: Bool
    """bool, (n,)"""
    logprobs: Float32
    """float32 (float64 when the output was written so), (n,), finite"""
    weight: float
    """Share of the run's weight. The weights of a run's samples sum to the run's weight, 0 when it must not train."""
    advantage: float | None = None
    """One number for the whole sample; None when there is none, or when ``advantage_per_action`` holds one for each action span."""
    advantage_per_action: Float64 = field(default_factory=lambda: np.zeros(0, np.float64))
    """float64, (number of action spans,) with turn rewards, else (0,)"""
    reward: float | None = None
    excluded: str | None = None
    """None, or why the run must not train."""
    finish_reason: str = "unknown"
    termination: str | None = None
    spans: tuple[Span, ...] = ()
    turns: tuple[Turn, ...] = ()
    version_spans: tuple[VersionSpan, ...] = ()
    attempt: int = 0
    trajectory_id: str | None = None
    model: str | None = None
    group_size: int | None = None
    """Runs of the group, also those that are excluded or have no reward."""
    scores: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def trained_tokens(self) -> int:
        return int(self.loss_mask.sum())

    @property
    def run(self) -> tuple[str, str, int]:
        """Key of the rollout that the sample belongs to."""
        return (self.run_id, self.trial_id, self.attempt)

    @property
    def prompt_length(self) -> int:
        """Tokens before the first trained one: where the layouts with a prompt and a response are split. ``n`` when nothing trains."""
        trained = np.flatnonzero(self.loss_mask)
        return int(trained[0]) if len(trained) else len(self.tokens)

    @property
    def temperature(self) -> float | None:
        """The temperature of all turns that train; None when they differ or one is unknown."""
        seen = {turn.temperature for turn in self.trained_turns()}
        return seen.pop() if len(seen) == 1 else None

    @property
    def version_range(self) -> tuple[int, int] | None:
        """Oldest and newest weight version of the trained tokens; None when one of them has no number."""
        numbers = [span.number for span in self.version_spans if self.loss_mask[span.start : span.end].any()]
        if not numbers or any(number is None for number in numbers):
            return None
        known = [number for number in numbers if number is not None]
        return min(known), max(known)

    def trained_turns(self) -> list[Turn]:
        """Turns with a trained token in this sample."""
        trained = {span.turn for span in self.spans if span.kind == "action" and span.reason == "trained"}
        return [turn for turn in self.turns if turn.turn in trained]

    def token_advantages(self) -> Float32:
        """float32, (n,): the advantage of each trained token, 0 elsewhere. Raises ValueError where there is none."""
        values = np.zeros(len(self.tokens), np.float32)
        if len(self.advantage_per_action):
            actions = [span for span in self.spans if span.kind == "action"]
            for span, value in zip(actions, self.advantage_per_action, strict=True):
                values[span.start : span.end] = value
        elif self.advantage is not None:
            values[:] = self.advantage
        else:
            raise ValueError(f"run {self.run_id} sample {self.sample_index} has no advantage")
        return np.where(self.loss_mask, values, np.float32(0))

    def temperatures(self) -> Float32:
        """float32, (n,): the temperature at which each token's turn was sampled, 1.0 for tokens that no turn sampled.

        Raises ValueError where a trained turn's temperature is unknown.
        """
        by_turn = {turn.turn: turn.temperature for turn in self.turns}
        values = np.ones(len(self.tokens), np.float32)
        for span in self.spans:
            if span.kind != "action":
                continue
            temperature = by_turn.get(span.turn)
            if temperature is not None:
                values[span.start : span.end] = temperature
            elif span.reason == "trained":
                raise ValueError(f"run {self.run_id} sample {self.sample_index}: turn {span.turn} has no known temperature")
        return values

    def token_versions(self) -> Int32:
        """int32, (n,): the weight version that sampled each token, -1 where nothing was sampled or no number is known."""
        values = np.full(len(self.tokens), -1, np.int32)
        for span in self.version_spans:
            if span.number is not None:
                values[span.start : span.end] = span.number
        return values
