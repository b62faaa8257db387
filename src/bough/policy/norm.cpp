// Root mean square norms of rows of WIDTH numbers, forward and backward, for a CPU: see norm.py.
//
//     y = x r (u + w)     r = (mean of x^2 + eps)^-1/2     u is 0 or 1
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (numbers of a row), CHUNK (rows).

#include "vector.h"

#include <cmath>

namespace {

Vector factor(const NUMBER* weight, int d, NUMBER unit) { return load(weight + d) + unit; }

}  // namespace

extern "C" void forward(
    const NUMBER* x, const NUMBER* weight, NUMBER* y, NUMBER* scales, int64_t rows, double eps, double unit,
    int32_t threads) {
    const NUMBER u = static_cast<NUMBER>(unit);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < rows; ++n) {
        const NUMBER* row = x + n * WIDTH;
        Vector squares{};
        for (int d = 0; d < WIDTH; d += LANES) squares += load(row + d) * load(row + d);
        const NUMBER r = 1 / std::sqrt(fold(squares, sum) / WIDTH + static_cast<NUMBER>(eps));
        for (int d = 0; d < WIDTH; d += LANES) store(y + n * WIDTH + d, load(row + d) * r * factor(weight, d, u));
        scales[n] = r;
    }
}

// The gradient of x, and that of the weight as a sum over each CHUNK of rows, [chunks, WIDTH], given that of y.
extern "C" void backward(
    const NUMBER* x, const NUMBER* weight, const NUMBER* scales, const NUMBER* pull, NUMBER* to_x, NUMBER* to_weight,
    int64_t rows, double unit, int32_t threads) {
    const NUMBER u = static_cast<NUMBER>(unit);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t chunk = 0; chunk < (rows + CHUNK - 1) / CHUNK; ++chunk) {
        NUMBER* const sums = to_weight + chunk * WIDTH;
        std::fill(sums, sums + WIDTH, NUMBER(0));
        for (int64_t n = chunk * CHUNK; n < std::min(rows, (chunk + 1) * CHUNK); ++n) {
            const NUMBER *row = x + n * WIDTH, *slope = pull + n * WIDTH, r = scales[n];
            Vector dot{};
            for (int d = 0; d < WIDTH; d += LANES) {
                const Vector product = load(slope + d) * load(row + d);
                dot += product * factor(weight, d, u);
                store(sums + d, load(sums + d) + product * r);
            }
            const NUMBER back = fold(dot, sum) * r * r * r / WIDTH;
            for (int d = 0; d < WIDTH; d += LANES)
                store(to_x + n * WIDTH + d, load(slope + d) * factor(weight, d, u) * r - load(row + d) * back);
        }
    }
}
