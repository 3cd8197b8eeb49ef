"""From a CUDA source tree to a HIP source tree, with a report on every line that still needs a person."""
