// Heads of queries and keys: normed, where a model norms them, and turned by their positions; and back; for a CPU.
// See rotate.py; of norms, norm.h.
//
//     (a, b) -> (a c - b s, b d + a t)   of the halves a, b of a head; (c, d) cosines, (s, t) sines of its token
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (numbers of half a head), CHUNK (tokens).

#include "norm.h"

namespace {

constexpr int HEAD = 2 * WIDTH;

// How heads are normed before they are turned; not at all without a weight.
struct Norm {
    const NUMBER* weight;  // [HEAD]
    NUMBER* scales;        // [tokens, heads], the r of each head
    double unit, eps;
    Heads rows;         // backward: what was normed
    NUMBER* to_weight;  // backward: [chunks, HEAD], the gradient of the weight as a sum over each CHUNK of tokens
};

template <bool BACK>
void turn(const NUMBER* in, NUMBER* out, const NUMBER* cos, const NUMBER* sin, const Norm* norm, NUMBER r) {
    for (int d = 0; d < WIDTH; d += LANES) {
        Vector a = load(in + d), b = load(in + d + WIDTH);
        if (norm) {
            a = normed(a, r, norm->weight + d, norm->unit);
            b = normed(b, r, norm->weight + d + WIDTH, norm->unit);
        }
        const Vector c = load(cos + d), s = load(sin + d), e = load(cos + d + WIDTH), f = load(sin + d + WIDTH);
        store(out + d, BACK ? a * c + b * f : a * c - b * s);
        store(out + d + WIDTH, BACK ? b * e - a * s : b * e + a * f);
    }
}

template <bool BACK>
void token(Heads from, Heads to, const Norm& norm, int64_t heads, int64_t t, const NUMBER* cos, const NUMBER* sin) {
    for (int64_t h = 0; h < heads; ++h) {
        const NUMBER* in = from.of(h, t);
        NUMBER *out = to.of(h, t), *r = norm.scales + t * heads + h;
        if (!norm.weight) turn<BACK>(in, out, cos, sin, nullptr, 1);
        else if constexpr (BACK) {
            turn<true>(in, out, cos, sin, nullptr, 1);
            NUMBER* const sums = norm.to_weight + t / CHUNK * HEAD;
            norm_back<HEAD>(norm.rows.of(h, t), *r, norm.weight, norm.unit, out, out, sums);
        } else {
            *r = scale_of<HEAD>(in, norm.eps);
            turn<false>(in, out, cos, sin, &norm, *r);
        }
    }
}

template <bool BACK>
void both(
    Heads query, Heads key, const NUMBER* cos, const NUMBER* sin, Heads to_query, Heads to_key, Norm of_query,
    Norm of_key, int64_t heads, int64_t key_heads, int64_t tokens, int32_t threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t chunk = 0; chunk < (tokens + CHUNK - 1) / CHUNK; ++chunk) {
        if (BACK)
            for (const Norm* norm : {&of_query, &of_key})
                if (norm->weight) std::fill_n(norm->to_weight + chunk * HEAD, HEAD, NUMBER(0));
        for (int64_t t = chunk * CHUNK; t < std::min(tokens, (chunk + 1) * CHUNK); ++t) {
            token<BACK>(query, to_query, of_query, heads, t, cos + HEAD * t, sin + HEAD * t);
            token<BACK>(key, to_key, of_key, key_heads, t, cos + HEAD * t, sin + HEAD * t);
        }
    }
}

}  // namespace

#define GIVEN                                                                                                  \
    Heads query, Heads key, const NUMBER *cos, const NUMBER *sin, Heads to_query, Heads to_key, Norm of_query, \
        Norm of_key, int64_t heads, int64_t key_heads, int64_t tokens, int32_t threads
#define TOLD query, key, cos, sin, to_query, to_key, of_query, of_key, heads, key_heads, tokens, threads

extern "C" void forward(GIVEN) { both<false>(TOLD); }

// The gradients of what was turned, given those of what it became.
extern "C" void backward(GIVEN) { both<true>(TOLD); }
