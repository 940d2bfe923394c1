"""slime, Miles: `--rollout-function-path slime_generate.generate_rollout --disable-rewards-normalization --use-rollout-logprobs`"""

from pathlib import Path

from slime.utils.types import Sample
from tito_rl import read, to_slime


def generate_rollout(args, rollout_id, data_source, evaluation=False):
    """Samples of the trials that were recorded for this rollout: a list for each run, as slime wants siblings."""
    rows = to_slime(read(Path(args.rollout_data_dir) / f"{rollout_id}.jsonl"))
    groups = {}
    for row in rows:
        groups.setdefault(row["group_index"], {}).setdefault(row["rollout_id"], []).append(Sample.from_dict(row))
    return [list(runs.values()) for runs in groups.values()]
