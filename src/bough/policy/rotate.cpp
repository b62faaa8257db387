// Rotations of queries and keys by their positions, and back, for a CPU: see rotate.py.
//
//     (a, b) -> (a c - b s, b d + a t)   of the halves a, b of a head; (c, d) cosines, (s, t) sines of its token
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (numbers of half a head), CHUNK (tokens for a
// thread at a time).

#include "vector.h"

namespace {

template <bool BACK>
void turn(Heads from, Heads to, int64_t heads, int64_t t, const NUMBER* cos, const NUMBER* sin) {
    for (int64_t h = 0; h < heads; ++h) {
        const NUMBER* in = from.of(h, t);
        NUMBER* out = to.of(h, t);
        for (int d = 0; d < WIDTH; d += LANES) {
            const Vector a = load(in + d), b = load(in + d + WIDTH);
            const Vector c = load(cos + d), s = load(sin + d), e = load(cos + d + WIDTH), f = load(sin + d + WIDTH);
            store(out + d, BACK ? a * c + b * f : a * c - b * s);
            store(out + d + WIDTH, BACK ? b * e - a * s : b * e + a * f);
        }
    }
}

template <bool BACK>
void both(
    Heads query, Heads key, const NUMBER* cos, const NUMBER* sin, Heads to_query, Heads to_key, int64_t query_heads,
    int64_t key_heads, int64_t tokens, int32_t threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static, CHUNK)
    for (int64_t t = 0; t < tokens; ++t) {
        turn<BACK>(query, to_query, query_heads, t, cos + 2 * WIDTH * t, sin + 2 * WIDTH * t);
        turn<BACK>(key, to_key, key_heads, t, cos + 2 * WIDTH * t, sin + 2 * WIDTH * t);
    }
}

}  // namespace

#define GIVEN                                                                                                  \
    Heads query, Heads key, const NUMBER *cos, const NUMBER *sin, Heads to_query, Heads to_key, int64_t heads, \
        int64_t key_heads, int64_t tokens, int32_t threads

extern "C" void forward(GIVEN) { both<false>(query, key, cos, sin, to_query, to_key, heads, key_heads, tokens, threads); }

// The gradients of what was turned, given those of what it became.
extern "C" void backward(GIVEN) { both<true>(query, key, cos, sin, to_query, to_key, heads, key_heads, tokens, threads); }
