"""Manifests, freshness, the workspace lock and the runner: what every stage shares. Knows nothing of CUDA or LLMs."""
