// What kernels of attention are made of: vectors of numbers, their exponential, and heads in memory.
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (numbers of a head).

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

namespace {

constexpr bool SINGLE = std::is_same_v<NUMBER, float>;
using Integer = std::conditional_t<SINGLE, int32_t, int64_t>;

#ifdef __AVX512F__
constexpr int REGISTER = 64, ROWS = 8;
#else
constexpr int REGISTER = 32, ROWS = 4;
#endif

constexpr int LANES = std::gcd(REGISTER / static_cast<int>(sizeof(NUMBER)), WIDTH);
constexpr NUMBER NOTHING = -std::numeric_limits<NUMBER>::infinity();
constexpr NUMBER LEAST = std::numeric_limits<NUMBER>::lowest() / 4;  // finite: nothing minus nothing is no number

typedef NUMBER Vector __attribute__((vector_size(LANES * sizeof(NUMBER)), aligned(sizeof(NUMBER)), may_alias));
typedef Integer Integers __attribute__((vector_size(LANES * sizeof(NUMBER)), aligned(sizeof(NUMBER)), may_alias));

#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Integers{__VA_ARGS__})
#endif

Vector load(const NUMBER* at) { return *reinterpret_cast<const Vector*>(at); }
void store(NUMBER* at, Vector what) { *reinterpret_cast<Vector*>(at) = what; }

// Lanes change places with those H further.
template <int H, int... I>
Vector swapped(Vector v, std::integer_sequence<int, I...>) { return SHUFFLE(v, v, (I ^ H)...); }

// All lanes as one.
template <int H = LANES / 2, typename Join>
NUMBER fold(Vector v, Join join) {
    if constexpr (H == 0) return v[0];
    else return fold<H / 2>(join(v, swapped<H>(v, std::make_integer_sequence<int, LANES>{})), join);
}

Vector greater(Vector a, Vector b) { return a > b ? a : b; }
Vector sum(Vector a, Vector b) { return a + b; }

// 1 / k! of k < N.
template <int N>
constexpr std::array<NUMBER, N> factors() {
    std::array<NUMBER, N> found{NUMBER(1)};
    double each = 1;
    for (int k = 1; k < N; ++k) found[k] = static_cast<NUMBER>(each /= k);
    return found;
}

// e^x of x <= 0, exact to about a unit in the last place; 0 where that is hardly a number.
//
// x = n ln 2 + r with a whole n and |r| <= ln 2 / 2: a Taylor series for e^r, and n added to its binary exponent.
Vector exponential(Vector x) {
    constexpr NUMBER lowest = SINGLE ? -87 : -708;
    constexpr int bits = SINGLE ? 23 : 52, terms = SINGLE ? 8 : 14;
    constexpr auto factor = factors<terms>();
    constexpr NUMBER round = NUMBER(3) * (Integer(1) << (bits - 1));  // added, it leaves whole numbers
    // Two parts of ln 2: n times the first is exact.
    constexpr NUMBER high = SINGLE ? 0x1.62ep-1 : 0x1.62e42feep-1;
    constexpr NUMBER low = SINGLE ? 0x1.0bfbe8e7bcd5ep-15 : 0x1.a39ef35793c76p-33;
    const Integers none = x < lowest;
    x = none ? Vector{} : x;
    const Vector whole = x * NUMBER(1.4426950408889634) + round;
    const Vector n = whole - round;
    const Vector r = (x - n * high) - n * low;
    Vector power = Vector{} + factor[terms - 1];
    for (int k = terms - 2; k >= 0; --k) power = power * r + factor[k];
    const Integers scaled = reinterpret_cast<Integers&>(power) + (reinterpret_cast<const Integers&>(whole) << bits);
    return none ? Vector{} : reinterpret_cast<const Vector&>(scaled);
}

// Scores of keys before `first` and after `last` become nothing.
void hide(NUMBER* scores, int64_t first, int64_t last, int64_t padded) {
    if (first > 0) std::fill(scores, scores + std::min(first, padded), NOTHING);
    if (last + 1 < padded) std::fill(scores + std::max<int64_t>(last + 1, 0), scores + padded, NOTHING);
}

// [heads, tokens, WIDTH]; strides in numbers.
struct Heads {
    NUMBER* at;
    int64_t head, token;
    NUMBER* of(int64_t h, int64_t t) const { return at + h * head + t * token; }
};

}  // namespace
