#!/bin/bash
# Submits a run to a Ray cluster that exists: `RAY_ADDRESS=http://HEAD:8265 bash examples/cluster/ray_submit.sh`.
# The run starts on the head, in the folder that is given there. Its process ends with SIGTERM when the job is stopped.
# Not run. Checked: syntax, the command's settings. Runs on a Ray cluster without `ray job submit` are in the tests.
set -euo pipefail

ray job submit --no-wait --submission-id bough-submitted -- \
    bash -c "cd /opt/agent && bough train grpo --on sokoban name=submitted --cluster examples/cluster/ray.toml"
ray job logs --follow bough-submitted
