#!/bin/bash
# One GPU: vLLM generates on it, and frees it while the policy learns (sleep mode).
# Needs: pip install 'bough-rl[vllm]'
# Not run on a GPU. Checked: syntax, the command's settings; the calls around an update are in the tests, on a CPU.
set -euo pipefail

bough train grpo --on shop --policy smollm2 name=one-gpu policy.device=cuda engine='Vllm(sleeps=true, compiled=true)'
