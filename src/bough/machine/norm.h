// Root mean square norms of single rows, forward and backward.
//
//     y = x r (u + w)     r = (mean of x^2 + eps)^-1/2     u is 0 or 1

#pragma once

#include "vector.h"

#include <cmath>

namespace {

// Says r of a row of N numbers.
template <int N>
NUMBER scale_of(const NUMBER* row, NUMBER eps) {
    Vector squares{};
    for (int d = 0; d < N; d += LANES) squares += load(row + d) * load(row + d);
    return 1 / std::sqrt(fold(squares, sum) / N + eps);
}

Vector normed(Vector x, NUMBER r, const NUMBER* weight, NUMBER unit) { return x * r * (load(weight) + unit); }

// The gradient of a row, given that of its norm, which may lie in the same place; that of the weight is added to `sums`.
template <int N>
void norm_back(
    const NUMBER* row, NUMBER r, const NUMBER* weight, NUMBER unit, const NUMBER* slope, NUMBER* to_row, NUMBER* sums) {
    Vector dot{};
    for (int d = 0; d < N; d += LANES) {
        const Vector product = load(slope + d) * load(row + d);
        dot += product * (load(weight + d) + unit);
        store(sums + d, load(sums + d) + product * r);
    }
    const NUMBER back = fold(dot, sum) * r * r * r / N;
    for (int d = 0; d < N; d += LANES)
        store(to_row + d, normed(load(slope + d), r, weight + d, unit) - load(row + d) * back);
}

}  // namespace
