"""prime-rl: one `TrainingSample` a sample, everything of full length. Tried with commit 559b4477, which is on no index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..batches import Batch, batch
from ..check import check
from ..layouts import logprobs32
from ..sample import Sample

FIELDS = ("token_ids", "mask", "logprobs", "temperatures", "env_name", "rl_weights", "advantages")


def to_prime_rl(samples: Iterable[Sample] | Batch, *, env_name: str = "tito") -> list[Any]:
    """``TrainingSample`` objects, or dicts with the same fields where prime-rl is not installed.

    ``token_ids`` (int), ``mask`` (bool), ``logprobs``, ``temperatures``, ``advantages``, ``rl_weights`` (float): lists of length n.
    The trainer divides each token's logits by its temperature, and the loss by the number of tokens whose ``rl_weights`` is not
    0: those hold ``weight x T / (N x trained)``, so that quotient is tito's objective. A sample longer than the trainer's
    ``seq_len`` is cut at its end: materialize with ``--max-seq-len``.
    """
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="token_mean")
    check(found.samples, "prime-rl")
    try:
        from prime_rl.transports.rollouts.types import TrainingSample as make
    except ImportError:
        make = dict
    made = []
    for sample in found:
        weights = np.where(sample.loss_mask, np.float32(found.factor(sample)), np.float32(0))
        made.append(
            make(
                token_ids=sample.tokens.tolist(),
                mask=sample.loss_mask.tolist(),
                logprobs=logprobs32(sample).tolist(),
                temperatures=sample.temperatures().tolist(),
                env_name=env_name,
                rl_weights=weights.tolist(),
                advantages=sample.token_advantages().tolist(),
            )
        )
    return made
