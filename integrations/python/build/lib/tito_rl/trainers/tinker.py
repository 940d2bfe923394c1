"""Tinker and the Fireworks training SDK: one `Datum` a sample, in the next-token layout. Tried with tinker 0.38.0, fireworks-ai 1.2.30."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..batches import Batch, batch
from ..check import check, check_version
from ..layouts import next_token
from ..sample import Sample


def to_tinker(samples: Iterable[Sample] | Batch, *, with_mask: bool = False) -> list[Any]:
    """``tinker.Datum`` objects for the built-in losses, which sum over tokens.

    ``model_input`` is tokens[:-1]; ``target_tokens`` int64, ``logprobs`` and ``advantages`` float32, all (n - 1,). An advantage
    of 0 means not trained. ``advantages`` hold ``weight / (N x trained)`` as a factor, so the service's sum is tito's objective.
    ``with_mask`` adds the ``mask`` that tinker-cookbook's own code expects and takes out before the call.
    """
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="sum")
    check(found.samples, "tinker")
    check_version("tinker")
    import tinker

    return [_datum(tinker, found, sample, "mask" if with_mask else None) for sample in found]


def to_fireworks(samples: Iterable[Sample] | Batch) -> list[Any]:
    """``Datum`` objects of the Fireworks training SDK: as for Tinker, with ``weights`` (float32, 1.0 where trained)."""
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="sum")
    check(found.samples, "fireworks")
    check_version("fireworks")
    from fireworks.training.sdk import types

    return [_datum(types, found, sample, "weights") for sample in found]


def _datum(sdk: Any, found: Batch, sample: Sample, mask_key: str | None) -> Any:
    line = next_token(sample, found)
    inputs = {
        "target_tokens": line.target_ids.astype(np.int64),
        "logprobs": line.logprobs,
        "advantages": line.advantages,
    }
    if mask_key is not None:
        inputs[mask_key] = line.mask.astype(np.float32)
    return sdk.Datum(model_input=sdk.ModelInput.from_ints(line.input_ids.tolist()), loss_fn_inputs=inputs)
