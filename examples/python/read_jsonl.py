"""Samples of a JSONL output as arrays: python read_jsonl.py samples.jsonl"""
import json, sys
import numpy as np

for line in open(sys.argv[1]):
    run = json.loads(line)
    for sample in run["samples"]:
        tokens = np.array(sample["tokens"], np.int32)
        mask = np.array(sample["loss_mask"], bool)
        logprobs = np.array(sample["logprobs"])
        print(run["run_id"], sample["sample_index"], len(tokens), mask.sum(), round(float(logprobs[mask].sum()), 6), float(sample["weight"]))
