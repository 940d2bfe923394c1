"""The three ways in which trainers lay a token line out. Index ``i`` below is tito's: a token's place in the whole line.

full        n values, index i
next-token  n - 1 values, index i - 1: inputs are tokens[:-1], targets tokens[1:]
response    n - p values, index i - p: p is the number of prompt tokens

Whoever shifts by one place keeps every length and every sum, and trains on the wrong tokens: tests of exports compare
log probabilities at trained places, and gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .batches import Batch
from .errors import TitoError
from .sample import Bool, Float32, Int32, Sample


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """A sample split into a prompt and a response; all arrays but ``prompt_ids`` have the response's length."""

    prompt_ids: Int32
    response_ids: Int32
    mask: Bool
    logprobs: Float32
    advantages: Float32


def response(sample: Sample, batch: Batch) -> Response:
    """The response layout, split before the first trained token.

    Rows that begin with a shared prefix then have short responses; token 0 is never trained, so the prompt is not empty.
    """
    split = sample.prompt_length
    return Response(
        prompt_ids=sample.tokens[:split],
        response_ids=sample.tokens[split:],
        mask=sample.loss_mask[split:],
        logprobs=logprobs32(sample)[split:],
        advantages=batch.token_advantages(sample)[split:],
    )


@dataclass(frozen=True, slots=True, eq=False)
class NextToken:
    """A sample for losses over next tokens; every array has n - 1 values."""

    input_ids: Int32
    target_ids: Int32
    mask: Bool
    logprobs: Float32
    advantages: Float32


def next_token(sample: Sample, batch: Batch) -> NextToken:
    """The next-token layout."""
    return NextToken(
        input_ids=sample.tokens[:-1],
        target_ids=sample.tokens[1:],
        mask=sample.loss_mask[1:],
        logprobs=logprobs32(sample)[1:],
        advantages=batch.token_advantages(sample)[1:],
    )


def logprobs32(sample: Sample) -> Float32:
    """float32, (n,): the log probabilities where the mask is 1, and 0.0 elsewhere."""
    return np.where(sample.loss_mask, sample.logprobs, 0.0).astype(np.float32)


def pad_left(rows: list[NDArray[np.generic]], width: int, value: float, dtype: type) -> NDArray[np.generic]:
    """(rows, width) with each row at the right end. Raises TitoError where a row is longer than ``width``."""
    block = np.full((len(rows), width), value, dtype)
    for index, row in enumerate(rows):
        _check_width(len(row), width)
        block[index, width - len(row) :] = row
    return block


def pad_right(rows: list[NDArray[np.generic]], width: int, value: float, dtype: type) -> NDArray[np.generic]:
    """(rows, width) with each row at the left end. Raises TitoError where a row is longer than ``width``."""
    block = np.full((len(rows), width), value, dtype)
    for index, row in enumerate(rows):
        _check_width(len(row), width)
        block[index, : len(row)] = row
    return block


def _check_width(length: int, width: int) -> None:
    if length > width:
        raise TitoError(f"a row of {length} tokens does not fit into {width}; materialize with --max-seq-len, or give more room")
