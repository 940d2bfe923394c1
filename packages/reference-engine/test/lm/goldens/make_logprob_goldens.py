"""log π of fixed id sequences under transformers' LlamaForCausalLM in float64, as the yardstick of our own forward pass.

    python make_logprob_goldens.py fixtures/policy > logprob-goldens.json     (pip install torch transformers, CPU)
"""

import json
import random
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

CHAT = [
    {"role": "system", "content": "Solve with tools.\nCurrent date: 2026-11-30\nCurrent working directory: /tmp/tito-123456/07"},
    {"role": "user", "content": [{"type": "text", "text": "Add 37 and 58 in your head. Save it in answer.txt."}]},
]


def main() -> None:
    directory = sys.argv[1]
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float64).eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    chat = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    rng = random.Random(3)
    lengths = [2, 64, 65, 300, 1024]
    sequences = [tokenizer(chat, add_special_tokens=False)["input_ids"]]
    sequences += [[rng.randrange(len(tokenizer)) for _ in range(length)] for length in lengths]
    cases = []
    for ids in sequences:
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
        logprobs = torch.log_softmax(logits, -1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        cases.append({"ids": ids, "logprobs": [round(value, 7) for value in logprobs.tolist()]})
    print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")


main()
