"""The replacement of the host's script for spark-submit: the same host, killed at the point that its environment names."""

import os
import sys
from pathlib import Path

# Python puts this file's folder first on the path, where it would hide modules of other names.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]

if __name__ == "__main__":
    from airflow_pipelines.host.main import main
    from tools.chaos.points import VARIABLE, Point, kill_at

    number, _, name = os.environ.pop(VARIABLE, "").partition(" ")
    if name:
        kill_at(Point.parse(name), int(number))
    sys.exit(main(sys.argv[1:]))
