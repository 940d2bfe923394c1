"""Samples of a msgpack output as arrays, without a copy: python read_msgpack.py samples.msgpack"""
import sys
import msgpack, numpy as np

array = lambda value: np.frombuffer(value["data"], value["dtype"])
for run in msgpack.Unpacker(open(sys.argv[1], "rb")):
    for sample in run["samples"]:
        tokens, mask = array(sample["tokens"]), array(sample["loss_mask"]).astype(bool)
        logprobs = array(sample["logprobs"]).astype(float)
        print(run["run_id"], sample["sample_index"], len(tokens), mask.sum(), round(float(logprobs[mask].sum()), 6), float(sample["weight"]))
