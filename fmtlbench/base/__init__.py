"""What knows nothing of the field: errors, words, files, schema, YAML, registries, seeds."""
