"""TRL: GRPOTrainer over rollouts that tito recorded. Each step runs the trials, materializes them and returns the rows.

`run_trials(step)` is yours: it runs `tito run` for every prompt (num_generations trials each, --group-id PROMPT) against the
engine that serves the current weights, and returns the directory with the trials.
"""

import subprocess
from pathlib import Path

from tito_rl import read, reward_of, to_trl


def rollout_func(run_trials, num_generations):
    """A `rollout_func` for `GRPOTrainer(rollout_func=..., reward_funcs=reward_of)`; prompts are group ids, in order."""

    def rollout(prompts, trainer):
        trials = Path(run_trials(trainer.state.global_step))
        out = trials / "samples.jsonl"
        subprocess.run(["tito", "materialize", str(trials), "--out", str(out), "--check-for", "trl"], check=True)
        return to_trl(read(out), num_generations=num_generations, order=list(dict.fromkeys(prompts)))

    return rollout


__all__ = ["reward_of", "rollout_func"]
