"""Writes the demo policy's weights as a GGUF file, F32 as they are: `policy_gguf.py MODEL_DIR OUT.gguf`. Needs the package gguf.

llama.cpp's own converter knows tokenizers by a digest of what they make of a test text, and this one is not in its list. The policy's split pattern is Qwen2's over ASCII.
"""

import json
import struct
import sys
from pathlib import Path

import gguf
import numpy as np

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


def tensors(path):
    """Name -> array, of a safetensors file with F32 tensors."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise SystemExit(f"{name} is {entry['dtype']}, not F32")
        start, end = entry["data_offsets"]
        yield name, np.frombuffer(data[8 + length + start : 8 + length + end], "<f4").reshape(entry["shape"])


def interleaved(weights, heads):
    """llama.cpp rotates neighbouring values where transformers rotates halves of a head."""
    rows = weights.shape[0]
    return weights.reshape(heads, 2, rows // heads // 2, -1).swapaxes(1, 2).reshape(weights.shape)


NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def renamed(name):
    name = name.removesuffix(".weight").removeprefix("model.")
    if name == "embed_tokens":
        return "token_embd.weight"
    if name == "norm":
        return "output_norm.weight"
    _, layer, rest = name.split(".", 2)
    return f"blk.{layer}.{NAMES[rest]}.weight"


def add_vocabulary(writer, directory, eos):
    tokenizer = json.loads((directory / "tokenizer.json").read_text())
    texts = {id: text for text, id in tokenizer["model"]["vocab"].items()}
    types = dict.fromkeys(texts, NORMAL)
    for token in tokenizer["added_tokens"]:
        texts[token["id"]] = token["content"]
        types[token["id"]] = CONTROL if token["special"] else USER_DEFINED
    order = range(len(texts))
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([texts[id] for id in order])
    writer.add_token_types([types[id] for id in order])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(eos)
    writer.add_add_bos_token(False)
    writer.add_chat_template((directory / "chat_template.jinja").read_text())


def main(directory, out):
    config = json.loads((directory / "config.json").read_text())
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_name("policy")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    add_vocabulary(writer, directory, config["eos_token_id"])
    for name, weights in tensors(directory / "model.safetensors"):
        if ".q_proj." in name:
            weights = interleaved(weights, heads)
        if ".k_proj." in name:
            weights = interleaved(weights, kv_heads)
        writer.add_tensor(renamed(name), np.ascontiguousarray(weights))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
