"""Turn Parquet shards of tasks into a better policy."""
