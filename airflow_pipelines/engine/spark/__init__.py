"""The only folder that uses what PySpark keeps private: sessions, prepared queries, plans, analysis, collection."""
