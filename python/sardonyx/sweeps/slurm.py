"""A Slurm script for a sweep's shares as a bare job array."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path

from sardonyx.sweeps.estimate import Estimate
from sardonyx.sweeps.plan import Plan

NAME = "sweep.sbatch"
#: How much longer, and how much larger, than a few points have shown.
ROOM = 2.0
LEAST_SECONDS, LEAST_MIB = 600, 1024


def script(plan: Plan, folder: Path, shares: int, estimate: Estimate) -> str:
    """The script: each task of the array runs one share of the points."""
    whole = (estimate.seconds or 0.0) * estimate.left / shares
    seconds = max(LEAST_SECONDS, math.ceil(ROOM * whole))
    memory = max(LEAST_MIB, math.ceil(ROOM * (estimate.memory or 0) / 2**20))
    hours, minutes = seconds // 3600, seconds // 60 % 60 + 1
    file, out = Path(plan.place.name), folder.absolute()
    words = [sys.executable, "-m", "sardonyx", "sweep", str(file.absolute()), "--out", str(out)]
    return f"""#!/bin/bash
# {estimate.left:,} of {estimate.points:,} points are to be run, in {shares:,} shares.
# Time and memory are twice what {estimate.tried} points have shown; change them if you know better.
# Submit it with sbatch, and again for what a limit has ended: what is done is not run again.
#SBATCH --job-name={shlex.quote(file.stem)}
#SBATCH --array=1-{shares}
#SBATCH --cpus-per-task=1
#SBATCH --mem={memory}M
#SBATCH --time={hours}:{minutes:02}:00
#SBATCH --output={out}/slurm-%a.log
cd {shlex.quote(str(Path.cwd()))} || exit 2
exec {shlex.join(words)} \\
  --shard "$SLURM_ARRAY_TASK_ID/{shares}" --jobs "${{SLURM_CPUS_PER_TASK:-1}}"
"""
