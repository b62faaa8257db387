// Attention over a paged KV cache, for CPUs. paged_attention.py compiles and calls it.
//
// Keys of a page are read once for all queries that see them. They lie turned round, [WIDTH, PAGE], so that the scores
// of a query are computed side by side and none must be summed across a register. A query meets its pages one after the
// other and keeps the greatest score so far and the sum of the exponentials, as in FlashAttention (arXiv 2205.14135).
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (elements of a head), PAGE (tokens).

#include "vector.h"

#include <vector>

namespace {

constexpr int VECTORS = WIDTH / LANES;
constexpr int SIDE = VECTORS % 2 ? 1 : 2;  // vectors of a value that are summed together
constexpr int ROOM = (ROWS + LANES - 1) / LANES * LANES;  // for a number of every row
constexpr int TOKENS = 64;  // of one piece of work

// A query of one head, and what it has met so far.
struct Row {
    const NUMBER* query;
    NUMBER* mixed;  // [WIDTH], the sum of values, each times its exponential
    NUMBER* state;  // greatest score, sum of exponentials
    int64_t first, last;  // the keys of the page that it sees
};

// Scores of V vectors of keys from `begin` on.
template <int N, int V>
void score(const Row* rows, const NUMBER* keys, NUMBER (*scores)[PAGE], int begin, NUMBER scale) {
    Vector sums[N][V] = {};
    for (int d = 0; d < WIDTH; ++d) {
        Vector key[V];
        for (int v = 0; v < V; ++v) key[v] = load(keys + d * PAGE + begin + v * LANES);
        for (int n = 0; n < N; ++n)
            for (int v = 0; v < V; ++v) sums[n][v] += rows[n].query[d] * key[v];
    }
    for (int n = 0; n < N; ++n)
        for (int v = 0; v < V; ++v) store(scores[n] + begin + v * LANES, sums[n][v] * scale);
}

// Scores become exponentials. `shrink` is what all that was met before is multiplied by, for all rows at once.
template <int N>
void weigh(const Row* rows, NUMBER (*scores)[PAGE], int padded, NUMBER* shrink) {
    alignas(64) NUMBER greatest[ROOM] = {};
    for (int n = 0; n < N; ++n) {
        hide(scores[n], rows[n].first, rows[n].last, padded);
        Vector best = load(scores[n]);
        for (int j = LANES; j < padded; j += LANES) best = greater(load(scores[n] + j), best);
        greatest[n] = std::max(rows[n].state[0], fold(best, greater));
        shrink[n] = rows[n].state[0] - greatest[n];
    }
    for (int n = 0; n < N; n += LANES) store(shrink + n, exponential(load(shrink + n)));
    for (int n = 0; n < N; ++n) {
        Vector sums{};
        for (int j = 0; j < padded; j += LANES) {
            const Vector weight = exponential(load(scores[n] + j) - greatest[n]);
            store(scores[n] + j, weight);
            sums += weight;
        }
        rows[n].state[0] = greatest[n];
        rows[n].state[1] = rows[n].state[1] * shrink[n] + fold(sums, sum);
    }
}

// N rows meet the first tokens of a page.
template <int N>
void meet(const Row* rows, const NUMBER* keys, const NUMBER* values, int tokens, NUMBER scale) {
    alignas(64) NUMBER scores[N][PAGE];
    const int padded = (tokens + LANES - 1) / LANES * LANES;
    int begin = 0;
    for (; begin + 2 * LANES <= padded; begin += 2 * LANES) score<N, 2>(rows, keys, scores, begin, scale);
    if (begin < padded) score<N, 1>(rows, keys, scores, begin, scale);
    alignas(64) NUMBER shrink[ROOM] = {};
    weigh<N>(rows, scores, padded, shrink);
    for (int at = 0; at < WIDTH; at += SIDE * LANES) {
        Vector mixed[N][SIDE];
        for (int n = 0; n < N; ++n)
            for (int v = 0; v < SIDE; ++v) mixed[n][v] = load(rows[n].mixed + at + v * LANES) * shrink[n];
        for (int j = 0; j < tokens; ++j) {
            Vector value[SIDE];
            for (int v = 0; v < SIDE; ++v) value[v] = load(values + j * WIDTH + at + v * LANES);
            for (int n = 0; n < N; ++n)
                for (int v = 0; v < SIDE; ++v) mixed[n][v] += scores[n][j] * value[v];
        }
        for (int n = 0; n < N; ++n)
            for (int v = 0; v < SIDE; ++v) store(rows[n].mixed + at + v * LANES, mixed[n][v]);
    }
}

using Meet = void (*)(const Row*, const NUMBER*, const NUMBER*, int, NUMBER);

template <int... N>
constexpr std::array<Meet, sizeof...(N) + 1> meets(std::integer_sequence<int, N...>) {
    return {nullptr, meet<N + 1>...};
}

constexpr auto MEET = meets(std::make_integer_sequence<int, ROWS>{});

// See `PageRuns` in engine/page_runs.py; arrays of S runs, E pages, Q queries, U tokens.
struct PageRuns {
    int64_t tokens, runs;
    const int64_t *place, *position, *page_begin, *page, *start, *filled, *query_begin, *token, *until;
};

// Query heads [begin, end) share one head of keys: their output for tokens [from, to).
void attend_some(
    const PageRuns& pass, Heads query, const NUMBER* keys, const NUMBER* values, Heads out, int64_t begin,
    int64_t end, int64_t from, int64_t to, NUMBER scale, int64_t window) {
    std::vector<NUMBER> state(2 * (to - from) * (end - begin));
    const auto state_of = [&](int64_t h, int64_t t) { return &state[2 * ((t - from) * (end - begin) + h - begin)]; };
    for (int64_t t = from; t < to; ++t)
        for (int64_t h = begin; h < end; ++h) {
            state_of(h, t)[0] = LEAST;
            std::memset(out.of(h, t), 0, WIDTH * sizeof(NUMBER));
        }
    for (int64_t s = 0; s < pass.runs; ++s) {
        const int64_t* last = pass.token + pass.query_begin[s + 1];
        const int64_t* q_begin = std::lower_bound(pass.token + pass.query_begin[s], last, from);
        const int64_t* q_end = std::lower_bound(q_begin, last, to);
        for (int64_t p = pass.page_begin[s]; p < pass.page_begin[s + 1]; ++p) {
            const int64_t start = pass.start[p], place = pass.page[p] * PAGE * WIDTH;
            Row rows[ROWS];
            int64_t ready = 0, seen = 0;
            for (const int64_t* q = q_begin; q < q_end; ++q) {
                const int64_t at = pass.position[*q] - start;
                const int64_t far = std::min({at, pass.until[q - pass.token] - start, pass.filled[p] - 1});
                const int64_t near = window ? std::max<int64_t>(at - window + 1, 0) : 0;
                if (near > far) continue;
                for (int64_t h = begin; h < end; ++h) {
                    rows[ready++] = {query.of(h, *q), out.of(h, *q), state_of(h, *q), near, far};
                    seen = std::max(seen, far + 1);
                    if (ready < ROWS) continue;
                    meet<ROWS>(rows, keys + place, values + place, seen, scale);
                    ready = seen = 0;
                }
            }
            if (ready) MEET[ready](rows, keys + place, values + place, seen, scale);
        }
    }
    for (int64_t t = from; t < to; ++t)
        for (int64_t h = begin; h < end; ++h) {
            NUMBER* mixed = out.of(h, t);
            const NUMBER part = 1 / state_of(h, t)[1];
            for (int d = 0; d < WIDTH; ++d) mixed[d] *= part;
        }
}

}  // namespace

// New keys and values, to where they belong in the cache: keys turned round.
extern "C" void put(const PageRuns* pass, Heads key, Heads value, Heads keys, Heads values, int64_t heads) {
    for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < pass->tokens; ++t) {
            const int64_t place = pass->place[t];
            NUMBER* turned = keys.of(h, place - place % PAGE) + place % PAGE;
            for (int d = 0; d < WIDTH; ++d) turned[d * PAGE] = key.of(h, t)[d];
            std::memcpy(values.of(h, place), value.of(h, t), WIDTH * sizeof(NUMBER));
        }
}

// The output of each of `group * heads` query heads; `heads` are those of the keys. Work is cut the same way however many
// threads there are, so results are the same, too.
extern "C" void attend(
    const PageRuns* pass, Heads query, Heads keys, Heads values, Heads out, int64_t heads, int64_t group,
    double scale, int64_t window, int32_t threads) {
    const int64_t pieces = (pass->tokens + TOKENS - 1) / TOKENS;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t piece = 0; piece < pieces * heads; ++piece) {
        const int64_t h = piece % heads, from = piece / heads * TOKENS;
        attend_some(
            *pass, query, keys.of(h, 0), values.of(h, 0), out, h * group, (h + 1) * group, from,
            std::min(from + TOKENS, pass->tokens), static_cast<NUMBER>(scale), window);
    }
}
