"""The engine, from plans to contents: circuits on Spark sessions, their steps, traces, checkpoints and journal."""
