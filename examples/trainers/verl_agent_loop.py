"""verl: an agent loop that starts one trial through tito and returns its samples. agent_loop_config_path names this class."""

import asyncio
from pathlib import Path

from tito_rl import read, to_verl_outputs
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, register


@register("tito")
class TitoAgentLoop(AgentLoopBase):
    """`extra_info.command` of a dataset row is the command that plays its task; it writes reward.json into the trial."""

    async def run(self, sampling_params, **row):
        trial = Path(row["extra_info"]["trial_dir"])
        upstream = row["extra_info"]["upstream"]
        settings = ["--sampling", f"temperature={sampling_params['temperature']}"]
        await _tito("run", "--upstream", upstream, "--model", "policy", "--out", trial / "tito", *settings, "--", *row["extra_info"]["command"])
        out = trial / "samples.jsonl"
        # A group is compared by verl, over the outputs of its rows: a single trial has no advantage of its own yet.
        await _tito("materialize", trial, "--out", out, "--credit", "grpo-no-std")
        return to_verl_outputs(read(out))


async def _tito(*arguments):
    process = await asyncio.create_subprocess_exec("tito", *map(str, arguments))
    if await process.wait() != 0:
        raise RuntimeError(f"tito {arguments[0]} ended with {process.returncode}")
