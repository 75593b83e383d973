"""The script that spark-submit runs: ``spark-submit submit.py --host-id <id>``."""

import gc
import sys
from pathlib import Path

# Python puts this file's folder first on the path, where modules of the host would hide those of the standard library
# (``statistics`` for one), so it has to go before anything else is imported.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]

if __name__ == "__main__":
    # Imported objects stay. Repeated garbage collections would take a fifth of the time of imports. The host enables them again.
    gc.disable()
    try:
        from airflow_pipelines.host.main import main
    except ModuleNotFoundError as error:
        if error.name != "airflow_pipelines":
            raise
        # Run from a source tree that is not installed.
        sys.path.append(str(_HERE.parents[1]))
        from airflow_pipelines.host.main import main
    sys.exit(main(sys.argv[1:]))
