"""Changes that people made by hand in the migrated output, kept as patches and merged into every later run."""
