"""Turn repositories into Parquet shards of feature-deletion tasks."""
