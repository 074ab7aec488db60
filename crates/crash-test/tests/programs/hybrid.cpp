// Leaves in persistent memory (a bitmap, fingerprints, pairs, the next leaf), the tree above them in memory only: recovery walks the leaves.
// A split is in a small log of two pointers. `hybrid FILE run` and `hybrid FILE check [ACKS]`.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

#define CLWB(p) asm volatile("clwb (%0)" : : "r"(p) : "memory")
#define SFENCE() asm volatile("sfence" ::: "memory")

constexpr int kPairs = 24;
constexpr std::size_t kLeaves = 128;

struct Leaf {
    std::uint64_t bitmap, next;
    std::uint8_t finger[kPairs];
    std::uint8_t pad[24];
    struct { std::int64_t key; std::uint64_t value; } pair[kPairs];
};
struct Pool {
    std::uint64_t magic, first, used, pad[5];
    struct { std::uint64_t from, to, pad[6]; } split;
    Leaf leaf[kLeaves];
};

template <typename T> inline void persist(T *what, std::size_t bytes = sizeof(T)) {
    char *p = (char *)((std::uintptr_t)what & ~63ul);
    for (; p < (char *)what + bytes; p += 64) CLWB(p);
    SFENCE();
}

class HybridTree {
    Pool *pool;
    std::map<std::int64_t, std::uint64_t> inner; // the least key of each leaf

    static std::uint8_t finger_of(std::int64_t key) { return (std::uint8_t)(key * 0x9E37 >> 7); }
    Leaf &leaf(std::uint64_t n) { return pool->leaf[n]; }
    std::uint64_t leaf_of(std::int64_t key) { auto it = inner.upper_bound(key); return it == inner.begin() ? it->second : (--it)->second; }

    std::int64_t split_key(const Leaf &l) {
        std::int64_t keys[kPairs];
        int n = 0;
        for (int i = 0; i < kPairs; i++) if (l.bitmap >> i & 1) keys[n++] = l.pair[i].key;
        std::nth_element(keys, keys + n / 2, keys + n);
        return keys[n / 2];
    }

    void move_upper(Leaf &from, Leaf &to, std::int64_t key) {
        std::uint64_t upper = 0;
        for (int i = 0; i < kPairs; i++) if ((from.bitmap >> i & 1) && from.pair[i].key >= key) upper |= 1ul << i;
        std::memcpy(to.pair, from.pair, sizeof to.pair);
        std::copy(from.finger, from.finger + kPairs, to.finger);
        to.next = from.next;
        to.bitmap = upper;
        persist(&to);
        from.next = &to - pool->leaf;
        persist(&from.next);
        from.bitmap &= ~upper;
        persist(&from.bitmap);
    }

    std::uint64_t split(std::uint64_t n) {
        std::uint64_t fresh = pool->used;
        if (fresh == kLeaves) std::exit(5);
        pool->split.to = fresh;
        pool->split.from = n;
        persist(&pool->split);
        pool->used = fresh + 1;
        persist(&pool->used);
        std::int64_t key = split_key(leaf(n));
        move_upper(leaf(n), leaf(fresh), key);
        pool->split.from = 0;
        persist(&pool->split.from);
        inner[key] = fresh;
        return key;
    }

  public:
    explicit HybridTree(Pool *pool) : pool(pool) {}

    void create() {
        pool->first = 1;
        pool->used = 2;
        persist(pool);
        pool->magic = 0x4B1D;
        persist(&pool->magic);
        inner[INT64_MIN] = 1;
    }

    void insert(std::int64_t key, std::uint64_t value) {
        std::uint64_t n = leaf_of(key);
        if (leaf(n).bitmap == (1ul << kPairs) - 1) { split(n); n = leaf_of(key); }
        Leaf &l = leaf(n);
        int i = __builtin_ctzl(~l.bitmap);
        l.pair[i].key = key;
        l.pair[i].value = value;
        l.finger[i] = finger_of(key);
        CLWB(&l.pair[i]);
        persist(&l.finger[i]);
        l.bitmap |= 1ul << i;
        persist(&l.bitmap);
    }

    void update(std::int64_t key, std::uint64_t value) {
        std::uint64_t n = leaf_of(key);
        if (leaf(n).bitmap == (1ul << kPairs) - 1) { split(n); n = leaf_of(key); }
        Leaf &l = leaf(n);
        int old = 0;
        while (!(l.bitmap >> old & 1) || l.pair[old].key != key) old++;
        int i = __builtin_ctzl(~l.bitmap);
        l.pair[i].key = key;
        l.pair[i].value = value;
        l.finger[i] = finger_of(key);
        CLWB(&l.pair[i]);
        persist(&l.finger[i]);
        l.bitmap = (l.bitmap | 1ul << i) & ~(1ul << old);
        persist(&l.bitmap);
    }

    int recover() {
        if (pool->split.from) {
            Leaf &from = leaf(pool->split.from), &to = leaf(pool->split.to);
            if (pool->used == pool->split.to) pool->used++;
            if (from.next == pool->split.to) from.bitmap &= ~to.bitmap;
            persist(&from.bitmap);
            pool->split.from = 0;
            persist(&pool->split.from);
        }
        std::size_t steps = 0;
        std::int64_t least = INT64_MIN;
        for (std::uint64_t n = pool->first; n; n = leaf(n).next) {
            if (n >= pool->used || ++steps > kLeaves) { std::puts("the leaves are not linked"); return 13; }
            std::int64_t low = INT64_MAX, high = INT64_MIN;
            for (int i = 0; i < kPairs; i++)
                if (leaf(n).bitmap >> i & 1) {
                    if (leaf(n).finger[i] != finger_of(leaf(n).pair[i].key)) { std::puts("a fingerprint is wrong"); return 14; }
                    low = std::min(low, leaf(n).pair[i].key);
                    high = std::max(high, leaf(n).pair[i].key);
                }
            if (low <= least && least != INT64_MIN) { std::puts("leaves overlap"); return 15; }
            inner[n == pool->first ? INT64_MIN : low] = n;
            least = std::max(least, high);
        }
        return 0;
    }

    std::uint64_t *get(std::int64_t key) {
        Leaf &l = leaf(leaf_of(key));
        for (int i = 0; i < kPairs; i++) if ((l.bitmap >> i & 1) && l.finger[i] == finger_of(key) && l.pair[i].key == key) return &l.pair[i].value;
        return nullptr;
    }
};

int main(int count, char **words) {
    if (count < 3) return 2;
    bool running = !std::strcmp(words[2], "run");
    int file = open(words[1], running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (file < 0 || (running && ftruncate(file, sizeof(Pool)))) return 3;
    void *mapped = mmap(nullptr, sizeof(Pool), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return 3;
    Pool *pool = (Pool *)mapped;
    HybridTree tree(pool);
    const std::int64_t keys = 400;
    if (running) {
        tree.create();
        for (std::int64_t i = 0; i < keys; i++) {
            tree.insert(i * 37 % 1009, i + 1);
            if (i % 4 == 3) tree.update((i / 2) * 37 % 1009, i / 2 + 1);
            std::printf("%ld\n", i);
            std::fflush(stdout);
        }
        return 0;
    }
    if (pool->magic != 0x4B1D) { std::puts("no tree"); return 9; }
    int wrong = tree.recover();
    if (wrong) return wrong;
    std::int64_t acked = 0;
    FILE *acks = count > 3 ? std::fopen(words[3], "r") : nullptr;
    for (int c; acks && (c = std::getc(acks)) != EOF;) acked += c == '\n';
    for (std::int64_t i = 0; i < keys; i++) {
        std::uint64_t *value = tree.get(i * 37 % 1009);
        if (value && *value != (std::uint64_t)i + 1) { std::printf("key %ld: %lu\n", i, *value); return 10; }
        if (!value && i < acked) { std::printf("key %ld is lost\n", i); return 11; }
    }
    return 0;
}
