#!/bin/bash
# One node of eight GPUs: a learner whose weights four ranks divide, and four vLLM servers.
# Needs: pip install 'bough-rl[ray,vllm]'
# Not run: no such node at hand. Checked: syntax, the command's settings.
set -euo pipefail

# Rank 0 has the first GPU, and Ray the others.
CUDA_VISIBLE_DEVICES=1,2,3,4,5,6,7 ray start --head --num-gpus 7
trap 'ray stop' EXIT
CUDA_VISIBLE_DEVICES=0 bough train grpo --on shop --policy smollm2 name=eight-gpus policy.device=cuda objective='Tis()' --cluster examples/cluster/eight_gpus.toml
