// Root mean square norms of rows of WIDTH numbers, forward and backward, for a CPU: see norm.py.
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (numbers of a row), CHUNK (rows).

#include "norm.h"

namespace {

void add(const NUMBER* x, const NUMBER* more, NUMBER* out) {
    for (int d = 0; d < WIDTH; d += LANES) store(out + d, load(x + d) + load(more + d));
}

}  // namespace

// Of x, or of x + more, which is put into `all`.
extern "C" void forward(
    const NUMBER* x, const NUMBER* more, const NUMBER* weight, NUMBER* all, NUMBER* y, NUMBER* scales, int64_t rows,
    double eps, double unit, int32_t threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < rows; ++n) {
        const NUMBER* row = x + n * WIDTH;
        if (more) {
            add(row, more + n * WIDTH, all + n * WIDTH);
            row = all + n * WIDTH;
        }
        scales[n] = scale_of<WIDTH>(row, eps);
        for (int d = 0; d < WIDTH; d += LANES) store(y + n * WIDTH + d, normed(load(row + d), scales[n], weight + d, unit));
    }
}

// The gradient of what was normed, to which `beside` is added if there is one; and that of the weight as a sum over each
// CHUNK of rows, [chunks, WIDTH]; given that of y.
extern "C" void backward(
    const NUMBER* x, const NUMBER* weight, const NUMBER* scales, const NUMBER* pull, const NUMBER* beside, NUMBER* to_x,
    NUMBER* to_weight, int64_t rows, double unit, int32_t threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t chunk = 0; chunk < (rows + CHUNK - 1) / CHUNK; ++chunk) {
        NUMBER* const sums = to_weight + chunk * WIDTH;
        std::fill(sums, sums + WIDTH, NUMBER(0));
        for (int64_t n = chunk * CHUNK; n < std::min(rows, (chunk + 1) * CHUNK); ++n) {
            NUMBER* const to_row = to_x + n * WIDTH;
            norm_back<WIDTH>(x + n * WIDTH, scales[n], weight, unit, pull + n * WIDTH, to_row, sums);
            if (beside) add(to_row, beside + n * WIDTH, to_row);
        }
    }
}
