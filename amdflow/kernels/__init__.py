"""TileLang kernels: lowered to HIP, compiled to code objects, measured against each target's limits, tested on the CPU."""
