"""The rule catalogue: what it says (YAML in ``migration/rules``), and how it is found in sources."""
