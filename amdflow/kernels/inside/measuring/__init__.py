"""Times and errors of operators on the GPU that torch sees; needs torch and tilelang, nothing of amdflow's core."""
