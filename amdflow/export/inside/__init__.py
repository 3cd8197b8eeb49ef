"""Scripts that run inside the fine-tuning environment, started by path with its Python. They import nothing of amdflow."""
