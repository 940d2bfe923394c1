#!/usr/bin/env bash
# A real engine: llama.cpp's server on CPU serves the demo's own weights in F32; the sidecar drives it in both prompt modes, and llama.cpp and the embedded engine recompute every log probability.
#   scripts/e2e-llamacpp.sh        needs network for the first run (100 MB), git, cmake, a C++ compiler (fifteen minutes on two cores), python3 and a build of the workspace
# TITO_LLAMA_SERVER: a llama-server that is there already. TITO_GGUF_VENV: a virtual environment that has the package gguf.
set -euo pipefail
cd "$(dirname "$0")/.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/tito/llamacpp"
server="${TITO_LLAMA_SERVER:-$cache/build/bin/llama-server}"
venv="${TITO_GGUF_VENV:-$cache/gguf}"
skip() {
  echo "SKIPPED e2e-llamacpp: $1"
  exit 0
}
if [ ! -x "$server" ]; then
  for tool in git cmake c++; do command -v "$tool" >/dev/null || skip "no $tool, and TITO_LLAMA_SERVER is not set"; done
  # llama.cpp's sources, as the Node package brings them: a git bundle.
  mkdir -p "$cache"
  rm -rf "$cache/package" "$cache/source" "$cache/build"
  (cd "$cache" && npm pack --silent node-llama-cpp@3.21.1 >/dev/null && tar xzf node-llama-cpp-3.21.1.tgz package/llama/gitRelease.bundle) || skip "the package node-llama-cpp 3.21.1 cannot be had here"
  git -c advice.detachedHead=false clone -q "$cache/package/llama/gitRelease.bundle" "$cache/source"
  # No compiler optimisation beyond the first level: the model is tiny, the build is not.
  cmake -S "$cache/source" -B "$cache/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" -DBUILD_SHARED_LIBS=OFF -DLLAMA_OPENSSL=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF >"$cache/cmake.log" 2>&1 \
    || { tail -n 20 "$cache/cmake.log"; skip "llama.cpp cannot be configured here"; }
  cmake --build "$cache/build" --target llama-server -j 2 >"$cache/build.log" 2>&1 || { tail -n 20 "$cache/build.log"; skip "llama.cpp cannot be built here"; }
fi
if ! "$venv/bin/python" -c "import gguf" 2>/dev/null; then
  command -v python3 >/dev/null || skip "no python3"
  python3 -m venv "$venv" || skip "python3 has no venv"
  "$venv/bin/pip" install -q gguf==0.19.0 || skip "gguf 0.19.0 cannot be installed here"
fi
model="$(pwd)/fixtures/policy"
port="${TITO_LLAMACPP_PORT:-18714}"
work="$(mktemp -d)"
"$venv/bin/python" scripts/policy_gguf.py "$model" "$work/policy.gguf"
# F32 throughout: weights, cache, and no fused attention that computes in F16.
"$server" --model "$work/policy.gguf" --alias policy --host 127.0.0.1 --port "$port" --ctx-size 2048 --parallel 1 --threads 2 --jinja \
  --cache-type-k f32 --cache-type-v f32 --flash-attn off --no-webui >"$work/log" 2>&1 &
engine=$!
trap 'kill "$engine" 2>/dev/null || true; wait "$engine" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 60); do
  if curl -fsS "http://127.0.0.1:$port/health" >/dev/null 2>&1; then
    "$server" --version 2>&1 | head -n 1
    node --import tsx scripts/e2e-llamacpp.ts "http://127.0.0.1:$port" "$model"
    exit
  fi
  if ! kill -0 "$engine" 2>/dev/null; then
    tail -n 40 "$work/log"
    echo "e2e-llamacpp: llama-server does not start"
    exit 1
  fi
  sleep 1
done
tail -n 40 "$work/log"
echo "e2e-llamacpp: llama-server was not ready after a minute"
exit 1
