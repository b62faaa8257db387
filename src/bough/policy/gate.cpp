// Gated activations, forward and backward, for a CPU: see gate.py.
//
//     y = x s u     s = 1 / (1 + e^-x), of a gate x and what it lets through, u
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (numbers come in so many), CHUNK (of those,
// for a thread at a time).

#include "vector.h"

namespace {

Vector sigmoid(Vector x) {
    const Integers positive = x > NUMBER(0);
    const Vector small = exponential(positive ? -x : x);
    return (positive ? Vector{} + NUMBER(1) : small) / (small + NUMBER(1));
}

}  // namespace

extern "C" void forward(const NUMBER* gate, const NUMBER* up, NUMBER* out, int64_t count, int32_t threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static, CHUNK)
    for (int64_t n = 0; n < count / WIDTH; ++n)
        for (int64_t d = n * WIDTH; d < (n + 1) * WIDTH; d += LANES) {
            const Vector x = load(gate + d);
            store(out + d, x * sigmoid(x) * load(up + d));
        }
}

// The gradients of both, given that of y.
extern "C" void backward(
    const NUMBER* gate, const NUMBER* up, const NUMBER* pull, NUMBER* to_gate, NUMBER* to_up, int64_t count,
    int32_t threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static, CHUNK)
    for (int64_t n = 0; n < count / WIDTH; ++n)
        for (int64_t d = n * WIDTH; d < (n + 1) * WIDTH; d += LANES) {
            const Vector x = load(gate + d), slope = load(pull + d), s = sigmoid(x), passed = x * s;
            store(to_gate + d, slope * load(up + d) * (s + passed * (NUMBER(1) - s)));
            store(to_up + d, slope * passed);
        }
}
