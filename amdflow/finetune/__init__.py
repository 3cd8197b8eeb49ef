"""Fine-tuning with LLaMA-Factory: a config checked before anything starts, trained in an environment of its own, resumable."""
