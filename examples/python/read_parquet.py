"""Samples of a Parquet output as arrays, a row group at a time: python read_parquet.py samples.parquet"""
import sys
import numpy as np, pyarrow.parquet as pq

file = pq.ParquetFile(sys.argv[1])
for batch in (file.read_row_group(group) for group in range(file.num_row_groups)):
    for row in (i for i in range(batch.num_rows) if batch["sample_index"][i].is_valid):
        tokens, mask, logprobs = (batch[name][row].values.to_numpy() for name in ("tokens", "loss_mask", "logprobs"))
        mask, weight = mask.astype(bool), float(batch["weight"][row].as_py())
        print(batch["run_id"][row], batch["sample_index"][row], len(tokens), mask.sum(), round(float(logprobs[mask].astype(float).sum()), 6), weight)
