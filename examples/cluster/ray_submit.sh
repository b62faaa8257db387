#!/bin/bash
# Submits a run to a Ray cluster that exists: `RAY_ADDRESS=http://HEAD:8265 bash examples/cluster/ray_submit.sh`.
# The run starts on the head, in the folder that is given there. Its process ends with SIGTERM when the job is stopped.
# Not run: the installed Ray had no dashboard, which accepts jobs at port 8265 (`pip install 'ray[default]'` on all nodes). Checked: syntax, the
# command's settings; the same run on two nodes without `ray job submit` is in bench/two_nodes.py.
set -euo pipefail

ray job submit --no-wait --submission-id bough-submitted -- \
    bash -c "cd /opt/agent && bough train grpo --on sokoban name=submitted --cluster examples/cluster/ray.toml"
ray job logs --follow bough-submitted
