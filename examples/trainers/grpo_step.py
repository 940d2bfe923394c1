"""One GRPO step in plain PyTorch: python grpo_step.py samples.parquet MODEL_DIR OUT_DIR

The loss is (1 / N) x sum over samples of weight x mean over trained tokens of the clipped objective, so it does not matter
into how many samples a run was split. OUT_DIR gets the model after the step; an engine can load it.
"""

import sys

import torch
from tito_rl import batch, read
from transformers import AutoModelForCausalLM, AutoTokenizer

CLIP, LEARNING_RATE, ROWS_AT_ONCE = 0.2, 1e-5, 4


def token_logprobs(model, ids, mask, temperature):
    """log pi(token i | tokens before it) for i = 1 .. T - 1 of right-padded rows, (B, T - 1)."""
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1] / temperature
    return torch.log_softmax(logits.float(), -1).gather(-1, ids[:, 1:, None])[..., 0]


def padded(arrays, dtype, value=0):
    """Rows of different lengths as one (B, T) tensor, padded right."""
    rows = [torch.tensor(array).to(dtype) for array in arrays]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)


def step(model, optimizer, samples):
    """One optimizer step over everything that can train; returns the mean ratio, 1 when the recorded policy is the model."""
    found = batch(samples, reduction="sum")
    ratios, tokens = 0.0, 0
    for start in range(0, len(found), ROWS_AT_ONCE):
        rows = found.samples[start : start + ROWS_AT_ONCE]
        temperature = rows[0].temperature or 1.0
        ids = padded([row.tokens for row in rows], torch.long)
        attention = padded([torch.ones(len(row.tokens)) for row in rows], torch.long)
        mask = padded([row.loss_mask for row in rows], torch.bool)[:, 1:]
        old = padded([row.logprobs for row in rows], torch.float32)[:, 1:]
        advantage = padded([found.token_advantages(row) for row in rows], torch.float32)[:, 1:]
        ratio = torch.exp(token_logprobs(model, ids, attention, temperature) - old)
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        loss = -torch.minimum(ratio * advantage, clipped * advantage)[mask].sum()
        loss.backward()
        ratios, tokens = ratios + float(ratio[mask].detach().sum()), tokens + int(mask.sum())
    optimizer.step()
    optimizer.zero_grad()
    return ratios / tokens


if __name__ == "__main__":
    samples_file, model_dir, out_dir = sys.argv[1:]
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    print("mean ratio", step(model, torch.optim.AdamW(model.parameters(), LEARNING_RATE), read(samples_file)))
    model.save_pretrained(out_dir)
    AutoTokenizer.from_pretrained(model_dir).save_pretrained(out_dir)
