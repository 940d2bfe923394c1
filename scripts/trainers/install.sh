#!/usr/bin/env bash
# A virtual environment with every trainer that can be installed on a CPU, at the versions that docs/trainers.md names; some gigabytes.
#   scripts/trainers/install.sh [DIR]       python 3.12 or newer; prints the python to use
# slime and prime-rl are on no package index: their sources are cloned, or taken from TITO_SLIME_SOURCE and TITO_PRIME_RL_SOURCE.
set -euo pipefail
cd "$(dirname "$0")/../.."
home="${1:-${XDG_CACHE_HOME:-$HOME/.cache}/tito/trainers}"
base="${TITO_TRAINERS_PYTHON:-python3.12}"
mkdir -p "$home"
if [ ! -e "$home/venv/installed" ]; then
  "$base" -m venv "$home/venv"
  pip() { "$home/venv/bin/pip" install -q --disable-pip-version-check "$@"; }
  pip -r integrations/python/requirements.txt
  # Their own requirements name other releases of torch and transformers, and vLLM: what the proofs touch runs with these.
  pip --no-deps verl==0.9.1 skyrl==0.4.0 skyrl-gym tinker-cookbook==0.6.1 fireworks-ai==1.2.30
  pip tensordict==0.15.3 ray==2.60.0 hydra-core==1.3.8 omegaconf==2.3.1 codetiming==1.4.0 pillow==13.0.0 uvicorn==0.54.0 \
    fastapi==0.165.0 cachetools==8.0.2 transferqueue==0.1.11 chz==0.4.0 blobfile==3.3.0 loguru==0.7.3 jaxtyping==0.3.11 \
    cloudpathlib==0.26.0 beartype pybase64
  touch "$home/venv/installed"
fi
source_of() { # NAME REPOSITORY COMMIT
  [ -d "$home/$1" ] && return
  git clone -q "$2" "$home/$1.part" 2>/dev/null && git -C "$home/$1.part" checkout -q "$3" && mv "$home/$1.part" "$home/$1" ||
    { rm -rf "$home/$1.part"; echo "SKIPPED $1: its source cannot be cloned here" >&2; }
}
[ -n "${TITO_SLIME_SOURCE:-}" ] || source_of slime https://github.com/THUDM/slime 624b824a898ab0ec1fcb4d373004c7f3852bf515
[ -n "${TITO_PRIME_RL_SOURCE:-}" ] || source_of prime-rl https://github.com/PrimeIntellect-ai/prime-rl 559b44772e471d1538537b8805cc77f3824a5e64
echo "$home/venv/bin/python"
