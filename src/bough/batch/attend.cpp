// Attention of a forest's stretch, forward and backward, for a CPU: see native.py, which compiles and calls this.
//
// A tile of rows (a row is a query of one head; heads that share their keys stand together) meets the keys that it
// sees block by block, so that what it computes with stays in the nearest cache. Forward a row keeps the greatest score
// so far and the sum of the exponentials; backward the scores are made again, as in FlashAttention-2 (arXiv 2307.08691).
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (numbers of a head).

#include "vector.h"

#include <cmath>
#include <memory>
#include <vector>

namespace {

constexpr int TILE = 64, BLOCK = 64;  // rows, and keys

// How far apart in memory the rows of a matrix are, the numbers of a row, and the vectors of a row.
template <int EACH_ROW, int EACH_NUMBER, int EACH_VECTOR>
struct Layout {
    static constexpr int row = EACH_ROW, number = EACH_NUMBER, vector = EACH_VECTOR;
};

using Plain = Layout<WIDTH, 1, LANES>;              // [.., WIDTH]
using Turned = Layout<LANES, 1, WIDTH * LANES>;     // [WIDTH, ..], by panels of LANES columns
using Scores = Layout<BLOCK, 1, LANES>;             // [TILE, BLOCK]
using Across = Layout<1, BLOCK, BLOCK * LANES>;     // the same, read as [BLOCK, TILE]

// N rows and V vectors of out (+)= left @ right.
template <class Left, class Right, class Out, bool ADD, int N, int V>
void product(const NUMBER* left, const NUMBER* right, NUMBER* out, int64_t depth) {
    Vector sums[N][V] = {};
    if (ADD)
        for (int n = 0; n < N; ++n)
            for (int v = 0; v < V; ++v) sums[n][v] = load(out + n * Out::row + v * Out::vector);
    for (int64_t k = 0; k < depth; ++k) {
        Vector some[V];
        for (int v = 0; v < V; ++v) some[v] = load(right + k * Right::row + v * Right::vector);
        for (int n = 0; n < N; ++n)
            for (int v = 0; v < V; ++v) sums[n][v] += left[n * Left::row + k * Left::number] * some[v];
    }
    for (int n = 0; n < N; ++n)
        for (int v = 0; v < V; ++v) store(out + n * Out::row + v * Out::vector, sums[n][v]);
}

template <class Left, class Right, class Out, bool ADD, int V, int N = ROWS>
void products(const NUMBER* left, const NUMBER* right, NUMBER* out, int64_t rows, int64_t depth) {
    for (; rows >= N; rows -= N, left += N * Left::row, out += N * Out::row)
        product<Left, Right, Out, ADD, N, V>(left, right, out, depth);
    if constexpr (N > 1)
        if (rows) products<Left, Right, Out, ADD, V, N / 2>(left, right, out, rows, depth);
}

// out [rows, columns] (+)= left [rows, depth] @ right [depth, columns]; columns are whole vectors.
template <class Left, class Right, class Out, bool ADD>
void multiply(
    const NUMBER* left, const NUMBER* right, NUMBER* out, int64_t rows, int64_t columns, int64_t depth) {
    int64_t vectors = columns / LANES;
    for (; vectors >= 2; vectors -= 2, right += 2 * Right::vector, out += 2 * Out::vector)
        products<Left, Right, Out, ADD, 2>(left, right, out, rows, depth);
    if (vectors) products<Left, Right, Out, ADD, 1>(left, right, out, rows, depth);
}

// One number after the other of two vectors, of their first or second half.
template <int FIRST, int... I>
Vector zipped(Vector a, Vector b, std::integer_sequence<int, I...>) {
    return SHUFFLE(a, b, (FIRST + I / 2 + I % 2 * LANES)...);
}

// Lane n is all lanes of v[n] as one.
template <int N = LANES, typename Join>
Vector folded(Vector* v, Join join) {
    if constexpr (N > 1) {
        constexpr auto all = std::make_integer_sequence<int, LANES>{};
        for (int n = 0; n < N / 2; ++n) {
            const Vector a = v[n], b = v[n + N / 2];
            v[n] = join(zipped<0>(a, b, all), zipped<LANES / 2>(a, b, all));
        }
        return folded<N / 2>(v, join);
    } else return v[0];
}

// Lane i of v[n] becomes lane n of v[i].
void transpose(Vector* v) {
    constexpr auto all = std::make_integer_sequence<int, LANES>{};
    for (int times = 1; times < LANES; times *= 2) {
        Vector next[LANES];
        for (int n = 0; n < LANES / 2; ++n) {
            next[2 * n] = zipped<0>(v[n], v[n + LANES / 2], all);
            next[2 * n + 1] = zipped<LANES / 2>(v[n], v[n + LANES / 2], all);
        }
        std::copy(next, next + LANES, v);
    }
}

// Scores of some rows, LANES at most, become exponentials; `best` and `total` are their greatest score and the sum of
// exponentials so far. What they met before is to be multiplied by `shrink`.
void weigh(NUMBER* scores, int64_t rows, int64_t columns, NUMBER* best, NUMBER* total, NUMBER* shrink) {
    Vector found[LANES];
    for (Vector& each : found) each = Vector{} + NOTHING;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < columns; j += LANES) found[r] = greater(load(scores + r * BLOCK + j), found[r]);
    const Vector before = load(best), now = greater(folded(found, greater), before), less = exponential(before - now);
    store(best, now);
    store(shrink, less);
    for (Vector& each : found) each = Vector{};
    for (int64_t r = 0; r < rows; ++r)
        for (NUMBER* at = scores + r * BLOCK; at < scores + r * BLOCK + columns; at += LANES) {
            const Vector weight = exponential(load(at) - best[r]);
            store(at, weight);
            found[r] += weight;
        }
    store(total, load(total) * less + folded(found, sum));
}

int64_t padded(int64_t keys) { return (keys + LANES - 1) / LANES * LANES; }

// Keys or values, or their gradients: of the past, and of the stretch's own tokens.
struct Pair {
    Heads past, own;
    const int64_t* place;  // where the past is; null: one token after the other
    NUMBER* of(int64_t h, int64_t key, int64_t many) const {
        return key >= many ? own.of(h, key - many) : past.of(h, place ? place[key] : key);
    }
};

// See `Runs` in native.py.
struct Runs {
    int64_t past, plots;
    const int64_t *plot, *query_begin, *query_end, *key_begin, *key_end, *position;
};

// How many heads the keys have, how many query heads share each, what scores are multiplied by, and how many tokens a
// query sees (0: all).
struct Settings {
    int64_t heads, group;
    NUMBER scale;
    int64_t window;
};

using Numbers = std::unique_ptr<NUMBER[]>;

// Runs that nothing outside them sees or is seen by, for one head of keys, which are put in whole vectors.
struct Plot {
    const Runs& runs;
    const Settings& set;
    const int64_t head, begin, end;
    int64_t first, last;  // rows: queries, each `group` times
    std::vector<int64_t> place;

    Plot(const Runs& all, const Settings& settings, int64_t piece)
        : runs(all), set(settings), head(piece % settings.heads), begin(all.plot[piece / settings.heads]),
          end(all.plot[piece / settings.heads + 1]) {
        first = runs.query_begin[begin] * set.group;
        last = *std::max_element(runs.query_end + begin, runs.query_end + end) * set.group;
        place.push_back(0);
        for (int64_t run = begin; run < end; ++run) place.push_back(place.back() + padded(keys(run)) * WIDTH);
    }
    int64_t keys(int64_t run) const { return runs.key_end[run] - runs.key_begin[run]; }
    int64_t at(int64_t run) const { return place[run - begin]; }
    int64_t size() const { return place.back(); }

    // Calls `act` with each key's numbers in memory, where its run is put, and which of the run it is.
    template <typename Act>
    void each(const Pair& pair, Act act) const {
        for (int64_t run = begin; run < end; ++run)
            for (int64_t k = 0; k < keys(run); ++k) act(pair.of(head, runs.key_begin[run] + k, runs.past), at(run), k);
    }
    Numbers plain(const Pair& from) const {
        Numbers into(new NUMBER[size()]);
        each(from, [&](NUMBER* one, int64_t run, int64_t k) {
            std::memcpy(&into[run + k * WIDTH], one, WIDTH * sizeof(NUMBER));
        });
        return into;
    }
    Numbers turned(const Pair& from) const {
        Numbers into(new NUMBER[size()]);
        for (int64_t run = begin; run < end; ++run)
            for (int64_t k = 0; k < keys(run); k += LANES)
                for (int d = 0; d < WIDTH; d += LANES) {
                    Vector panel[LANES] = {};
                    for (int i = 0; i < std::min<int64_t>(LANES, keys(run) - k); ++i)
                        panel[i] = load(from.of(head, runs.key_begin[run] + k + i, runs.past) + d);
                    transpose(panel);
                    for (int i = 0; i < LANES; ++i) store(&into[at(run) + k * WIDTH + (d + i) * LANES], panel[i]);
                }
        return into;
    }
    void write(const std::vector<NUMBER>& from, const Pair& into) const {
        each(into, [&](NUMBER* one, int64_t run, int64_t k) {
            std::memcpy(one, &from[run + k * WIDTH], WIDTH * sizeof(NUMBER));
        });
    }
};

// Rows of a plot, from `begin` to before `end`, and those of them, from `from` to before `to`, that meet a run.
struct Tile {
    const Plot& plot;
    const int64_t begin, end;
    int64_t from, to, nearest, first[TILE], last[TILE];  // which keys of the run each sees

    Tile(const Plot& all, int64_t first) : plot(all), begin(first), end(std::min(first + TILE, all.last)) {}

    int64_t size() const { return end - begin; }
    int64_t rows() const { return to - from; }
    NUMBER* of(Heads heads, int64_t row) const {
        const int64_t group = plot.set.group;
        return heads.of(plot.head * group + (begin + row) % group, (begin + row) / group);
    }
    void read(Heads from, NUMBER scale, NUMBER* into) const {
        for (int64_t r = 0; r < size(); ++r)
            for (int d = 0; d < WIDTH; d += LANES) store(into + r * WIDTH + d, load(of(from, r) + d) * scale);
    }
    bool meets(int64_t run) {
        const Runs& runs = plot.runs;
        const int64_t group = plot.set.group, key = runs.key_begin[run];
        from = std::max<int64_t>(0, runs.query_begin[run] * group - begin);
        to = std::min(size(), runs.query_end[run] * group - begin);
        nearest = plot.set.window ? plot.keys(run) : 0;
        for (int64_t r = from; r < to; ++r) {
            const int64_t own = runs.past + (begin + r) / group;
            last[r] = std::min(plot.keys(run) - 1, own - key);
            first[r] = 0;
            if (!plot.set.window) continue;
            first[r] = std::max<int64_t>(0, runs.position[own] - plot.set.window + 1 - runs.position[key]);
            nearest = std::min(nearest, first[r]);
        }
        return from < to;
    }
    // How many keys of a block are seen, from its first on.
    int64_t seen(int64_t block) const {
        return nearest < block + BLOCK ? std::min<int64_t>(BLOCK, last[to - 1] + 1 - block) : 0;
    }
    void hide_unseen(NUMBER* scores, int64_t block, int64_t columns) const {
        for (int64_t r = from; r < to; ++r)
            hide(scores + (r - from) * BLOCK, first[r] - block, last[r] - block, columns);
    }
    // Calls `act` with each block that is seen: where it is put, and how many keys of it.
    template <typename Act>
    void each_block(Act act) {
        for (int64_t run = plot.begin; run < plot.end && plot.runs.query_begin[run] * plot.set.group < end; ++run) {
            if (!meets(run)) continue;
            for (int64_t block = 0; block < plot.keys(run); block += BLOCK)
                if (const int64_t keys = seen(block); keys > 0) act(plot.at(run) + block * WIDTH, block, keys);
        }
    }
};

void forward_plot(const Plot& plot, Heads query, const Pair& key, const Pair& value, Heads out, Heads lse) {
    const Numbers keys = plot.turned(key), values = plot.plain(value);
    alignas(64) NUMBER asks[TILE * WIDTH], mixed[TILE * WIDTH], scores[TILE * BLOCK];
    NUMBER best[TILE + LANES], total[TILE + LANES], shrink[LANES];
    for (int64_t begin = plot.first; begin < plot.last; begin += TILE) {
        Tile tile(plot, begin);
        tile.read(query, plot.set.scale, asks);
        std::fill(std::begin(mixed), std::end(mixed), NUMBER(0));
        std::fill(std::begin(best), std::end(best), LEAST);
        std::fill(std::begin(total), std::end(total), NUMBER(0));
        tile.each_block([&](int64_t at, int64_t block, int64_t seen) {
            const int64_t columns = padded(seen), rows = tile.rows();
            NUMBER* const met = mixed + tile.from * WIDTH;
            multiply<Plain, Turned, Scores, false>(asks + tile.from * WIDTH, &keys[at], scores, rows, columns, WIDTH);
            tile.hide_unseen(scores, block, columns);
            for (int64_t r = 0; r < rows; r += LANES) {
                const int64_t some = std::min<int64_t>(LANES, rows - r), n = tile.from + r;
                weigh(scores + r * BLOCK, some, columns, best + n, total + n, shrink);
                for (int64_t i = 0; i < some; ++i)
                    for (NUMBER* one = met + (r + i) * WIDTH; one < met + (r + i + 1) * WIDTH; one += LANES)
                        store(one, load(one) * shrink[i]);
            }
            multiply<Scores, Plain, Plain, true>(scores, &values[at], met, rows, WIDTH, seen);
        });
        for (int64_t r = 0; r < tile.size(); ++r) {
            *tile.of(lse, r) = best[r] + std::log(total[r]);
            const NUMBER part = 1 / total[r];
            for (int d = 0; d < WIDTH; d += LANES) store(tile.of(out, r) + d, load(mixed + r * WIDTH + d) * part);
        }
    }
}

// Where gradients are, or go.
struct Slopes {
    Heads mixed, query;
    Pair key, value;
};

void backward_plot(
    const Plot& plot, Heads query, const Pair& key, const Pair& value, Heads out, Heads lse, const Slopes& slopes) {
    const Numbers keys = plot.plain(key), turned = plot.turned(key), values = plot.turned(value);
    std::vector<NUMBER> to_keys(plot.size()), to_values(plot.size());
    alignas(64) NUMBER asks[TILE * WIDTH], pulls[TILE * WIDTH], to_asks[TILE * WIDTH];
    alignas(64) NUMBER weights[TILE * BLOCK], scores[TILE * BLOCK];
    NUMBER inner[TILE], total[TILE];
    for (int64_t begin = plot.first; begin < plot.last; begin += TILE) {
        Tile tile(plot, begin);
        tile.read(query, plot.set.scale, asks);
        tile.read(slopes.mixed, 1, pulls);
        std::fill(std::begin(to_asks), std::end(to_asks), NUMBER(0));
        for (int64_t r = 0; r < tile.size(); ++r) {
            Vector sums{};
            for (int d = 0; d < WIDTH; d += LANES) sums += load(tile.of(out, r) + d) * load(pulls + r * WIDTH + d);
            inner[r] = fold(sums, sum);
            total[r] = *tile.of(lse, r);
        }
        tile.each_block([&](int64_t at, int64_t block, int64_t seen) {
            const int64_t columns = padded(seen), rows = tile.rows();
            const NUMBER *ask = asks + tile.from * WIDTH, *pull = pulls + tile.from * WIDTH;
            multiply<Plain, Turned, Scores, false>(ask, &turned[at], weights, rows, columns, WIDTH);
            multiply<Plain, Turned, Scores, false>(pull, &values[at], scores, rows, columns, WIDTH);
            tile.hide_unseen(weights, block, columns);
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t j = r * BLOCK; j < r * BLOCK + columns; j += LANES) {
                    const Vector weight = exponential(load(weights + j) - total[tile.from + r]);
                    store(weights + j, weight);
                    store(scores + j, weight * (load(scores + j) - inner[tile.from + r]));
                }
            multiply<Across, Plain, Plain, true>(weights, pull, &to_values[at], seen, WIDTH, rows);
            multiply<Across, Plain, Plain, true>(scores, ask, &to_keys[at], seen, WIDTH, rows);
            multiply<Scores, Plain, Plain, true>(scores, &keys[at], to_asks + tile.from * WIDTH, rows, WIDTH, seen);
        });
        for (int64_t r = 0; r < tile.size(); ++r)
            for (int d = 0; d < WIDTH; d += LANES)
                store(tile.of(slopes.query, r) + d, load(to_asks + r * WIDTH + d) * plot.set.scale);
    }
    plot.write(to_keys, slopes.key);
    plot.write(to_values, slopes.value);
}

}  // namespace

// Mixed values, [heads * group, queries, WIDTH], and the log of the sum of each row's exponentials.
extern "C" void forward(
    const Runs* runs, Heads query, Pair key, Pair value, Heads out, Heads lse, int64_t heads, int64_t group,
    double scale, int64_t window, int32_t threads) {
    const Settings set{heads, group, static_cast<NUMBER>(scale), window};
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t piece = 0; piece < runs->plots * heads; ++piece)
        forward_plot(Plot(*runs, set, piece), query, key, value, out, lse);
}

// The gradients of queries, keys and values, given `pull`, that of what was mixed.
extern "C" void backward(
    const Runs* runs, Heads query, Pair key, Pair value, Heads out, Heads lse, Heads pull, Heads to_query,
    Pair to_key, Pair to_value, int64_t heads, int64_t group, double scale, int64_t window, int32_t threads) {
    const Settings set{heads, group, static_cast<NUMBER>(scale), window};
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t piece = 0; piece < runs->plots * heads; ++piece)
        backward_plot(Plot(*runs, set, piece), query, key, value, out, lse, {pull, to_query, to_key, to_value});
}
