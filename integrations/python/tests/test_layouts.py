"""Layouts: each token's values stand where the trainer's logits for it stand."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import made
from tito_rl import TitoError, batch
from tito_rl.layouts import next_token, pad_left, pad_right, response


def test_the_response_begins_at_the_first_trained_token() -> None:
    sample = made(prompt=3, actions=(2, 2))
    part = response(sample, batch([sample], reduction="sum"))
    assert part.prompt_ids.tolist() == [10, 11, 12]
    assert part.response_ids.tolist() == [13, 14, 15, 16, 17]
    assert part.mask.tolist() == [True, True, False, True, True]
    assert part.logprobs.tolist() == [-3 / 8, -4 / 8, 0, -6 / 8, -7 / 8]


def test_next_token_values_stand_one_place_before_their_token() -> None:
    sample = made(prompt=2, actions=(2,))
    line = next_token(sample, batch([sample], reduction="sum"))
    assert line.input_ids.tolist() == [10, 11, 12]
    assert line.target_ids.tolist() == [11, 12, 13]
    assert line.mask.tolist() == [False, True, True]
    assert line.logprobs.tolist() == [0, -2 / 8, -3 / 8]
    assert line.advantages.tolist() == [0, 0.25, 0.25]


def test_a_masked_action_keeps_its_place_and_has_no_log_probability() -> None:
    sample = made(actions=(2, 2))
    mask = sample.loss_mask.copy()
    mask[2:4] = False
    from dataclasses import replace

    hidden = replace(sample, loss_mask=mask)
    part = response(hidden, batch([hidden]))
    assert part.prompt_ids.tolist() == [10, 11, 12, 13, 14]
    assert part.logprobs.tolist() == [-5 / 8, -6 / 8]


def test_padding_that_does_not_fit_says_what_helps() -> None:
    assert pad_left([np.array([1, 2])], 3, 0, np.int64).tolist() == [[0, 1, 2]]
    assert pad_right([np.array([1, 2])], 3, 0, np.int64).tolist() == [[1, 2, 0]]
    with pytest.raises(TitoError, match="--max-seq-len"):
        pad_left([np.arange(4)], 3, 0, np.int64)


def test_advantages_by_action_are_spread_over_their_spans_and_nowhere_else() -> None:
    sample = made(prompt=2, actions=(2, 1), advantage=None, advantage_per_action=np.array([0.5, -2.0]))
    assert sample.token_advantages().tolist() == [0, 0, 0.5, 0.5, 0, -2.0]


def test_versions_and_temperatures_stand_at_their_tokens() -> None:
    sample = made(prompt=2, actions=(2, 1))
    assert sample.token_versions().tolist() == [-1, -1, 3, 3, -1, 4]
    assert sample.version_range == (3, 4)
    assert sample.temperatures().tolist() == [1.0] * 6
