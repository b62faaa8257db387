// Attention of a chunk of a packed prefix tree, forward and backward, for CPUs. tree_attention.py compiles and calls it.
//
// A block of keys meets the rows that see it tile by tile (a row is a query of one head; heads that share their keys
// stand together), so that what it computes with stays in the nearest cache. Forward a row keeps the greatest score so
// far and the sum of the exponentials; backward the scores are made again, as in FlashAttention-2 (arXiv 2307.08691).
//
// Given by the compiler's command line: NUMBER (float or double), WIDTH (elements of a head).

#include "vector.h"

#include <cmath>
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

// Keys or values, or their gradients: of the prefix, and of the chunk's own tokens.
struct Pair {
    Heads prefix, own;
    const int64_t* place;  // where the prefix is stored; null: one token after the other
    NUMBER* of(int64_t h, int64_t key, int64_t many) const {
        return key >= many ? own.of(h, key - many) : prefix.of(h, place ? place[key] : key);
    }
};

// See `KeyRuns` in tree_attention.py.
struct Runs {
    int64_t prefix, trees;
    const int64_t *tree, *query_begin, *query_end, *key_begin, *key_end, *position;
};

// How many heads the keys have, how many query heads share each, what scores are multiplied by, and how many tokens a
// query sees (0: all).
struct Settings {
    int64_t heads, group;
    NUMBER scale;
    int64_t window;
};

using Numbers = std::vector<NUMBER>;

// Some keys of a run: from where on, how many.
struct Block {
    int64_t run, key, keys;
};

// Some rows of a tree that see some of a block's keys: from where on, how many, and of how many keys, which fill whole
// vectors with some columns that no row sees.
struct Tile {
    int64_t row, rows, seen, columns;
};

// Runs that nothing outside them sees or is seen by, for one head of keys. A row is a query of one head.
struct Tree {
    const Runs& runs;
    const Settings& set;
    const int64_t head, begin, end;
    int64_t first, rows;  // the first query, and `group` times how many there are

    Tree(const Runs& all, const Settings& settings, int64_t piece)
        : runs(all), set(settings), head(piece % settings.heads), begin(all.tree[piece / settings.heads]),
          end(all.tree[piece / settings.heads + 1]), first(all.query_begin[begin]) {
        rows = (*std::max_element(runs.query_end + begin, runs.query_end + end) - first) * set.group;
    }
    NUMBER* of(Heads heads, int64_t row) const {
        return heads.of(head * set.group + row % set.group, first + row / set.group);
    }
    // The key that a row's own token is.
    int64_t own(int64_t row) const { return runs.prefix + first + row / set.group; }

    Numbers read(Heads from, NUMBER scale) const {
        Numbers into(rows * WIDTH);
        for (int64_t r = 0; r < rows; ++r)
            for (int d = 0; d < WIDTH; d += LANES) store(&into[r * WIDTH + d], load(of(from, r) + d) * scale);
        return into;
    }
    void plain(const Pair& from, const Block& block, NUMBER* into) const {
        for (int64_t k = 0; k < block.keys; ++k)
            std::memcpy(into + k * WIDTH, from.of(head, block.key + k, runs.prefix), WIDTH * sizeof(NUMBER));
    }
    void turned(const Pair& from, const Block& block, NUMBER* into) const {
        for (int64_t k = 0; k < block.keys; k += LANES)
            for (int d = 0; d < WIDTH; d += LANES) {
                Vector panel[LANES] = {};
                for (int i = 0; i < std::min<int64_t>(LANES, block.keys - k); ++i)
                    panel[i] = load(from.of(head, block.key + k + i, runs.prefix) + d);
                transpose(panel);
                for (int i = 0; i < LANES; ++i) store(into + k * WIDTH + (d + i) * LANES, panel[i]);
            }
    }
    void write(const NUMBER* from, const Block& block, const Pair& into) const {
        for (int64_t k = 0; k < block.keys; ++k)
            std::memcpy(into.of(head, block.key + k, runs.prefix), from + k * WIDTH, WIDTH * sizeof(NUMBER));
    }

    // Calls `act` with each block.
    template <typename Act>
    void each_block(Act act) const {
        for (int64_t run = begin; run < end; ++run)
            for (int64_t key = runs.key_begin[run]; key < runs.key_end[run]; key += BLOCK)
                act(Block{run, key, std::min<int64_t>(BLOCK, runs.key_end[run] - key)});
    }
    // Calls `act` with each tile of a block.
    template <typename Act>
    void each_tile(const Block& block, Act act) const {
        const int64_t last = (runs.query_end[block.run] - first) * set.group;
        const int64_t earliest = std::max(runs.query_begin[block.run], block.key - runs.prefix) - first;
        for (int64_t row = earliest * set.group; row < last; row += TILE) {
            const int64_t some = std::min<int64_t>(TILE, last - row);
            const int64_t seen = std::min(block.keys, own(row + some - 1) + 1 - block.key);
            const Tile tile{row, some, seen, padded(seen)};
            if (!set.window || nearest(block, tile) < seen) act(tile);
        }
    }
    void hide_unseen(NUMBER* scores, const Block& block, const Tile& tile) const {
        if (!set.window && tile.columns == tile.seen && own(tile.row) >= block.key + tile.seen - 1) return;
        for (int64_t r = 0; r < tile.rows; ++r) {
            const int64_t from = set.window ? farthest(block, tile.row + r) : 0;
            hide(scores + r * BLOCK, from, std::min(tile.seen - 1, own(tile.row + r) - block.key), tile.columns);
        }
    }

   private:
    // The first key, of a block on, that a row sees through the window.
    int64_t farthest(const Block& block, int64_t row) const {
        return std::max<int64_t>(0, runs.position[own(row)] - set.window + 1 - runs.position[block.key]);
    }
    int64_t nearest(const Block& block, const Tile& tile) const {
        int64_t found = BLOCK;
        for (int64_t r = 0; r < tile.rows; ++r) found = std::min(found, farthest(block, tile.row + r));
        return found;
    }
};

void forward_tree(const Tree& tree, Heads query, const Pair& key, const Pair& value, Heads out, Heads lse) {
    const Numbers asks = tree.read(query, tree.set.scale);
    // A whole vector of rows is weighed at a time, the last of them with nothing.
    Numbers mixed(tree.rows * WIDTH), best(tree.rows + LANES, LEAST), total(tree.rows + LANES);
    alignas(64) NUMBER keys[BLOCK * WIDTH], values[BLOCK * WIDTH], scores[TILE * BLOCK], shrink[LANES];
    tree.each_block([&](const Block& block) {
        tree.turned(key, block, keys);
        tree.plain(value, block, values);
        tree.each_tile(block, [&](const Tile& tile) {
            NUMBER* const met = &mixed[tile.row * WIDTH];
            multiply<Plain, Turned, Scores, false>(
                &asks[tile.row * WIDTH], keys, scores, tile.rows, tile.columns, WIDTH);
            tree.hide_unseen(scores, block, tile);
            for (int64_t r = 0; r < tile.rows; r += LANES) {
                const int64_t some = std::min<int64_t>(LANES, tile.rows - r), n = tile.row + r;
                weigh(scores + r * BLOCK, some, tile.columns, &best[n], &total[n], shrink);
                for (int64_t i = 0; i < some; ++i)
                    for (NUMBER* one = met + (r + i) * WIDTH; one < met + (r + i + 1) * WIDTH; one += LANES)
                        store(one, load(one) * shrink[i]);
            }
            multiply<Scores, Plain, Plain, true>(scores, values, met, tile.rows, WIDTH, tile.seen);
        });
    });
    for (int64_t r = 0; r < tree.rows; ++r) {
        *tree.of(lse, r) = best[r] + std::log(total[r]);
        const NUMBER part = 1 / total[r];
        for (int d = 0; d < WIDTH; d += LANES) store(tree.of(out, r) + d, load(&mixed[r * WIDTH + d]) * part);
    }
}

// Where gradients are, or go.
struct Gradients {
    Heads mixed, query;
    Pair key, value;
};

void backward_tree(
    const Tree& tree, Heads query, const Pair& key, const Pair& value, Heads out, Heads lse, const Gradients& slopes) {
    const Numbers asks = tree.read(query, tree.set.scale), pulls = tree.read(slopes.mixed, 1);
    Numbers to_asks(tree.rows * WIDTH), inner(tree.rows), total(tree.rows);
    for (int64_t r = 0; r < tree.rows; ++r) {
        Vector sums{};
        for (int d = 0; d < WIDTH; d += LANES) sums += load(tree.of(out, r) + d) * load(&pulls[r * WIDTH + d]);
        inner[r] = fold(sums, sum);
        total[r] = *tree.of(lse, r);
    }
    alignas(64) NUMBER keys[BLOCK * WIDTH], turned[BLOCK * WIDTH], values[BLOCK * WIDTH];
    alignas(64) NUMBER to_keys[BLOCK * WIDTH], to_values[BLOCK * WIDTH], weights[TILE * BLOCK], scores[TILE * BLOCK];
    tree.each_block([&](const Block& block) {
        tree.plain(key, block, keys);
        tree.turned(key, block, turned);
        tree.turned(value, block, values);
        std::fill(std::begin(to_keys), std::end(to_keys), NUMBER(0));
        std::fill(std::begin(to_values), std::end(to_values), NUMBER(0));
        tree.each_tile(block, [&](const Tile& tile) {
            const NUMBER *ask = &asks[tile.row * WIDTH], *gradient = &pulls[tile.row * WIDTH];
            multiply<Plain, Turned, Scores, false>(ask, turned, weights, tile.rows, tile.columns, WIDTH);
            multiply<Plain, Turned, Scores, false>(gradient, values, scores, tile.rows, tile.columns, WIDTH);
            tree.hide_unseen(weights, block, tile);
            for (int64_t r = 0; r < tile.rows; ++r)
                for (int64_t j = r * BLOCK; j < r * BLOCK + tile.columns; j += LANES) {
                    const Vector weight = exponential(load(weights + j) - total[tile.row + r]);
                    store(weights + j, weight);
                    store(scores + j, weight * (load(scores + j) - inner[tile.row + r]));
                }
            multiply<Across, Plain, Plain, true>(weights, gradient, to_values, tile.seen, WIDTH, tile.rows);
            multiply<Across, Plain, Plain, true>(scores, ask, to_keys, tile.seen, WIDTH, tile.rows);
            multiply<Scores, Plain, Plain, true>(scores, keys, &to_asks[tile.row * WIDTH], tile.rows, WIDTH, tile.seen);
        });
        tree.write(to_keys, block, slopes.key);
        tree.write(to_values, block, slopes.value);
    });
    for (int64_t r = 0; r < tree.rows; ++r)
        for (int d = 0; d < WIDTH; d += LANES)
            store(tree.of(slopes.query, r) + d, load(&to_asks[r * WIDTH + d]) * tree.set.scale);
}

}  // namespace

// Mixed values, [heads * group, queries, WIDTH], and the log of the sum of each row's exponentials.
extern "C" void forward(
    const Runs* runs, Heads query, Pair key, Pair value, Heads out, Heads lse, int64_t heads, int64_t group,
    double scale, int64_t window, int32_t threads) {
    const Settings set{heads, group, static_cast<NUMBER>(scale), window};
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t piece = 0; piece < runs->trees * heads; ++piece)
        forward_tree(Tree(*runs, set, piece), query, key, value, out, lse);
}

// The gradients of queries, keys and values, given `gradient`, that of what was mixed.
extern "C" void backward(
    const Runs* runs, Heads query, Pair key, Pair value, Heads out, Heads lse, Heads gradient, Heads to_query,
    Pair to_key, Pair to_value, int64_t heads, int64_t group, double scale, int64_t window, int32_t threads) {
    const Settings set{heads, group, static_cast<NUMBER>(scale), window};
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t piece = 0; piece < runs->trees * heads; ++piece)
        backward_tree(Tree(*runs, set, piece), query, key, value, out, lse, {gradient, to_query, to_key, to_value});
}
