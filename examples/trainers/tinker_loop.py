"""Tinker: a training loop over materialized rollouts. `play(sampler_path)` is yours: it runs the trials and returns the samples file."""

import tinker
from tito_rl import batch, read, to_tinker


def train(play, base_model, steps, learning_rate=4e-5):
    client = tinker.ServiceClient().create_lora_training_client(base_model=base_model)
    for step in range(steps):
        sampler = client.save_weights_for_sampler(name=f"step-{step}").result().path
        found = batch(read(play(sampler)), reduction="sum")  # the service sums: factors hold 1 / (runs x trained tokens)
        client.forward_backward(to_tinker(found), loss_fn="importance_sampling").result()
        client.optim_step(tinker.AdamParams(learning_rate=learning_rate)).result()
        print(step, f"{found.runs} runs, {found.trained_tokens} tokens; left out: {found.left_out.keys()}")
