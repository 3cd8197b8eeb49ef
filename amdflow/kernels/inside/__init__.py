"""Scripts run by the kernels environment's Python: the standard library, torch and tilelang only."""
