"""Samples that tito recorded, as the objects that RL trainers take.

    from tito_rl import read, batch, to_verl
    step = batch(read("samples.parquet"))        # what can train; step.left_out says what cannot, and why
    data = to_verl(step, pad_token_id=0)

Reading needs numpy only (Parquet: pyarrow). Each ``to_...`` needs its trainer, refuses what that trainer cannot express, and
drops nothing silently.
"""

from .batches import Batch, batch, why_not
from .check import check
from .errors import CannotExpress, TitoError
from .read import read
from .sample import Sample, Span, Turn, VersionSpan
from .trainers.prime_rl import to_prime_rl
from .trainers.sft import to_sft
from .trainers.skyrl import skyrl_advantages, to_skyrl
from .trainers.slime import slime_dump, to_slime
from .trainers.tinker import to_fireworks, to_tinker
from .trainers.trl import reward_of, to_trl, to_trl_async
from .trainers.verl import to_verl, to_verl_outputs

__all__ = [
    "Batch",
    "CannotExpress",
    "Sample",
    "Span",
    "TitoError",
    "Turn",
    "VersionSpan",
    "batch",
    "check",
    "read",
    "reward_of",
    "skyrl_advantages",
    "slime_dump",
    "to_fireworks",
    "to_prime_rl",
    "to_sft",
    "to_skyrl",
    "to_slime",
    "to_tinker",
    "to_trl",
    "to_trl_async",
    "to_verl",
    "to_verl_outputs",
    "why_not",
]
