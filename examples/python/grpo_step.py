"""One GRPO step in plain PyTorch from a Parquet output of `tito materialize`; the saved directory goes back into an engine.

    python grpo_step.py --rows samples.parquet --model fixtures/habits --out next [--lr 1e-3] [--clip 0.2]

Needs torch, transformers and pyarrow. Prints one JSON line: loss, tokens, gradient norm, how far the ratios are from 1, and log pi of
every trained token before the step. What a row gives is used as it is: the recorded ids, mask and log probabilities, the advantage, the weight.
"""
import argparse, json, os, shutil
import pyarrow.parquet as pq, torch
from transformers import AutoModelForCausalLM

ADAM = dict(betas=(0.9, 0.999), eps=1e-8)
CLIP_NORM = 1.0  # longest gradient, Euclidean
KEPT = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")


def read_rows(path):
    """Rows that train: a sample that is there, with an advantage and a weight. The sum of the runs' weights is the batch's."""
    columns = ("run_id", "sample_index", "tokens", "loss_mask", "logprobs", "advantage", "weight")
    table = pq.read_table(path)
    names = [name for name in columns if name in table.column_names]
    rows = [row for row in table.select(names).to_pylist() if row["sample_index"] is not None]
    rows = [row for row in rows if row["advantage"] is not None and row["weight"] > 0]
    return rows, sum(row["weight"] for row in rows)


def trained_logprobs(model, row):
    """log pi of the trained tokens behind their prefixes: logits at i - 1 predict token i."""
    tokens = torch.tensor(row["tokens"])
    mask = torch.tensor(row["loss_mask"], dtype=torch.bool)
    logits = model(tokens[None]).logits[0, :-1].float()
    logprobs = torch.log_softmax(logits, -1).gather(1, tokens[1:, None])[:, 0]
    return logprobs[mask[1:]], torch.tensor(row["logprobs"], dtype=torch.float32)[mask]


def clipped_loss(new, old, advantage, clip):
    """Mean over the sample's trained tokens of -min(ratio * advantage, clipped ratio * advantage)."""
    ratio = (new - old).exp()
    bounded = ratio.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratio * advantage, bounded * advantage).mean(), ratio.detach(), bounded.detach()


def step(model, optimizer, rows, total_weight, clip):
    """Gradients of all rows add up; one Adam step at the end."""
    report = dict(loss=0.0, tokens=0, mean_logprob=0.0, ratio_off_max=0.0, clipped_tokens=0, gradient_norm=0.0, logprobs=[])
    optimizer.zero_grad()
    for row in rows:
        new, old = trained_logprobs(model, row)
        loss, ratio, bounded = clipped_loss(new, old, row["advantage"], clip)
        loss = loss * row["weight"] / total_weight
        loss.backward()
        report["loss"] += loss.item()
        report["tokens"] += len(new)
        report["mean_logprob"] += new.sum().item()
        report["ratio_off_max"] = max(report["ratio_off_max"], (ratio - 1).abs().max().item())
        report["clipped_tokens"] += int((bounded * row["advantage"] < ratio * row["advantage"]).sum())
        report["logprobs"].append(new.tolist())
    if report["tokens"] == 0:
        return dict(report, loss=None, mean_logprob=None)
    report["mean_logprob"] /= report["tokens"]
    report["gradient_norm"] = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM).item()
    optimizer.step()
    return report


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("rows", "model", "out"):
        flags.add_argument(f"--{name}", required=True)
    flags.add_argument("--lr", type=float, default=1e-3)
    flags.add_argument("--clip", type=float, default=0.2)
    given = flags.parse_args()
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(given.model, dtype=torch.float32, attn_implementation="eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=given.lr, **ADAM)
    state = os.path.join(given.model, "optimizer.pt")
    if os.path.exists(state):
        optimizer.load_state_dict(torch.load(state))
    rows, total_weight = read_rows(given.rows)
    report = step(model, optimizer, rows, total_weight, given.clip)
    model.save_pretrained(given.out)
    torch.save(optimizer.state_dict(), os.path.join(given.out, "optimizer.pt"))
    for name in KEPT:
        if os.path.exists(os.path.join(given.model, name)):
            shutil.copy(os.path.join(given.model, name), os.path.join(given.out, name))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
