"""The samples of one optimizer step, and the factor that makes a trainer's reduction mean what the weights say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from .errors import TitoError
from .sample import Float32, Sample

Reduction = Literal["token_mean", "sum", "row_mean", "run_mean"]
Run = tuple[str, str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Samples that train together, in order, and those that were left out, by reason.

    tito's objective over a batch of N runs is (1 / N) x sum over samples of weight x mean over its trained tokens of the loss.
    It does not depend on how a run is split into samples. ``factor`` says what to multiply each advantage by so that a
    trainer's own reduction computes exactly that. It is positive, so clipping keeps its side; it does not scale a KL or
    entropy term.
    """

    samples: list[Sample]
    left_out: dict[str, list[Sample]]
    reduction: Reduction
    run_weights: dict[Run, float] = field(init=False)
    """Weight of each rollout in this batch: the sum over its samples here."""
    trained_tokens: int = field(init=False)
    """T: trained tokens of the whole batch."""

    def __post_init__(self) -> None:
        weights: dict[Run, float] = {}
        for sample in self.samples:
            weights[sample.run] = weights.get(sample.run, 0.0) + sample.weight
        object.__setattr__(self, "run_weights", weights)
        object.__setattr__(self, "trained_tokens", sum(sample.trained_tokens for sample in self.samples))

    @property
    def runs(self) -> int:
        """N: rollouts with a sample in this batch."""
        return len(self.run_weights)

    def factor(self, sample: Sample) -> float:
        """What the sample's advantages are multiplied by.

        ``token_mean`` (sum over trained tokens / T): weight x T / (N x trained). ``sum``: weight / (N x trained).
        ``row_mean`` (mean of row means over B rows): weight x B / N. ``run_mean`` (per-run token means, averaged over
        runs; slime with ``rollout_id``): run weight, which is 1 with ``credit.weight: run``.
        """
        trained, runs = sample.trained_tokens, self.runs
        match self.reduction:
            case "token_mean":
                return sample.weight * self.trained_tokens / (runs * trained)
            case "sum":
                return sample.weight / (runs * trained)
            case "row_mean":
                return sample.weight * len(self.samples) / runs
            case "run_mean":
                return self.run_weights[sample.run]

    def token_advantages(self, sample: Sample) -> Float32:
        """float32, (n,): ``sample.token_advantages() * factor(sample)``."""
        return (sample.token_advantages() * np.float32(self.factor(sample))).astype(np.float32)

    def groups(self) -> dict[str, list[Sample]]:
        """The batch's samples by group, in order of first appearance."""
        found: dict[str, list[Sample]] = {}
        for sample in self.samples:
            found.setdefault(sample.group_id, []).append(sample)
        return found

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


def why_not(sample: Sample) -> str | None:
    """Why a sample cannot train, or None: excluded, no reward, no advantage, no weight, nothing trained; first match."""
    if sample.excluded is not None:
        return f"excluded: {sample.excluded}"
    if sample.trained_tokens == 0:
        return "no trained token"
    if sample.weight == 0:
        return "weight 0"
    if sample.advantage is None and not len(sample.advantage_per_action):
        return "no advantage" if sample.reward is not None else "no reward"
    return None


def batch(samples: Iterable[Sample], *, reduction: Reduction = "token_mean", whole_groups: bool = False) -> Batch:
    """The samples that can train, for one optimizer step whose loss the trainer reduces by ``reduction``.

    ``left_out`` of the result names every sample that is not in it and why; nothing is dropped silently. With ``whole_groups``
    a group of which any run cannot train is left out whole. Raises TitoError when nothing is left.
    """
    kept: list[Sample] = []
    left_out: dict[str, list[Sample]] = {}
    for sample in samples:
        reason = why_not(sample)
        if reason is None:
            kept.append(sample)
        else:
            left_out.setdefault(reason, []).append(sample)
    if whole_groups:
        present = {sample.run for sample in kept}
        broken = {s.group_id for rest in left_out.values() for s in rest if s.run not in present}
        sizes: dict[str, set[object]] = {}
        for sample in kept:
            sizes.setdefault(sample.group_id, set()).add(sample.run)
        broken |= {s.group_id for s in kept if s.group_size is not None and len(sizes[s.group_id]) < s.group_size}
        for sample in kept:
            if sample.group_id in broken:
                left_out.setdefault("group is not whole", []).append(sample)
        kept = [sample for sample in kept if sample.group_id not in broken]
    if not kept:
        reasons = ", ".join(f"{len(rest)} x {reason}" for reason, rest in left_out.items()) or "the input is empty"
        raise TitoError(f"no sample can train ({reasons}); tito materialize's report says why")
    return Batch(kept, left_out, reduction)
