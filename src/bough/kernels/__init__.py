"""C++ kernels for CPUs and what compiles them; without them everything runs on PyTorch's operations.

At most four modules import this package. `BOUGH_KERNELS=off` switches it off, as does a machine without a C++ compiler.
"""
