"""The core of stream programs: graphs of operators over streams of elements, and the loop that runs them. Imports no Spark and
no Airflow.
"""
