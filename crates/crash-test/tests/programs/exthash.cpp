// Extendible hashing: a directory of segments, each of 16 buckets of one line; a full segment is split, and the directory doubled when it
// must. `exthash FILE run` and `exthash FILE check [ACKS]`. A key is there when it is stored, so the value comes first.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <emmintrin.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

constexpr std::size_t kSlots = 4, kBuckets = 16, kRoom = 4 << 20;

static void clflush(const void *data, std::size_t len) {
    auto p = reinterpret_cast<std::uintptr_t>(data) & ~63ul;
    _mm_mfence();
    for (; p < reinterpret_cast<std::uintptr_t>(data) + len; p += 64)
        asm volatile("clflushopt (%0)" : : "r"(p) : "memory");
    _mm_mfence();
}

struct Pair { std::uint64_t key, value; };
struct Bucket { Pair slot[kSlots]; };
struct Segment {
    std::uint64_t local_depth, pattern, pad[6];
    Bucket bucket[kBuckets];
};
struct Directory {
    std::uint64_t depth, capacity, pad[6];
    std::uint64_t segment[1];  // offsets in the file
};
struct Root { char magic[8]; std::uint64_t directory, top, pad[5]; };

static char *base;
template <class T> T *at(std::uint64_t offset) { return reinterpret_cast<T *>(base + offset); }
static Root *root() { return at<Root>(0); }

static std::uint64_t hash_of(std::uint64_t key) {
    key ^= key >> 33; key *= 0xff51afd7ed558ccdULL; key ^= key >> 33; key *= 0xc4ceb9fe1a85ec53ULL;
    return key ^ key >> 33;
}

static std::uint64_t allocate(std::size_t bytes) {
    std::uint64_t offset = root()->top;
    if (offset + bytes > kRoom) std::exit(5);
    root()->top = (offset + bytes + 63) & ~63ul;
    clflush(&root()->top, sizeof root()->top);
    return offset;
}

class ExtendibleHash {
    static std::size_t prefix(std::uint64_t hash, std::uint64_t depth) { return depth ? hash >> (64 - depth) : 0; }
    Directory *dir() { return at<Directory>(root()->directory); }

    std::uint64_t make_directory(std::uint64_t depth) {
        std::uint64_t offset = allocate(sizeof(Directory) + 8 * ((1ul << depth) - 1));
        auto *made = at<Directory>(offset);
        made->depth = depth;
        made->capacity = 1ul << depth;
        return offset;
    }

    std::uint64_t make_segment(std::uint64_t depth, std::uint64_t pattern) {
        std::uint64_t offset = allocate(sizeof(Segment));
        auto *made = at<Segment>(offset);
        made->local_depth = depth;
        made->pattern = pattern;
        return offset;
    }

    static bool insert_into(Segment *segment, std::uint64_t key, std::uint64_t value, bool persist) {
        Bucket &home = segment->bucket[hash_of(key) % kBuckets];
        for (auto &slot : home.slot) {
            bool stale = slot.key && prefix(hash_of(slot.key), segment->local_depth) != segment->pattern;
            if (slot.key && !stale) continue;
            slot.value = value;
            std::atomic_thread_fence(std::memory_order_release);
            slot.key = key;
            if (persist) clflush(&slot, sizeof slot);
            return true;
        }
        return false;
    }

    void split(std::uint64_t hash) {
        Directory *d = dir();
        std::size_t x = prefix(hash, d->depth);
        auto *old = at<Segment>(d->segment[x]);
        std::uint64_t depth = old->local_depth + 1, pattern = old->pattern << 1;
        std::uint64_t fresh = make_segment(depth, pattern | 1);
        for (auto &bucket : old->bucket)
            for (auto &slot : bucket.slot)
                if (slot.key && prefix(hash_of(slot.key), depth) == (pattern | 1)) insert_into(at<Segment>(fresh), slot.key, slot.value, false);
        clflush(at<Segment>(fresh), sizeof(Segment));
        if (depth > d->depth) {
            std::uint64_t doubled = make_directory(d->depth + 1);
            auto *twice = at<Directory>(doubled);
            for (std::size_t i = 0; i < d->capacity; i++) twice->segment[2 * i] = twice->segment[2 * i + 1] = d->segment[i];
            twice->segment[2 * x + 1] = fresh;
            clflush(twice, sizeof(Directory) + 8 * (twice->capacity - 1));
            root()->directory = doubled;
            clflush(&root()->directory, 8);
        } else {
            std::size_t stride = 1ul << (d->depth - depth), from = (pattern | 1) * stride;
            for (std::size_t i = from; i < from + stride; i++) d->segment[i] = fresh;
            clflush(&d->segment[from], 8 * stride);
        }
        old->local_depth = depth;
        old->pattern = pattern;
        clflush(old, 16);
    }

  public:
    void create() {
        std::uint64_t offset = make_directory(1);
        for (std::uint64_t i = 0; i < 2; i++) {
            at<Directory>(offset)->segment[i] = make_segment(1, i);
            clflush(at<Segment>(at<Directory>(offset)->segment[i]), sizeof(Segment));
        }
        clflush(at<Directory>(offset), sizeof(Directory) + 8);
        root()->directory = offset;
        clflush(&root()->directory, 8);
    }

    void insert(std::uint64_t key, std::uint64_t value) {
        for (;;) {
            std::uint64_t hash = hash_of(key);
            auto *segment = at<Segment>(dir()->segment[prefix(hash, dir()->depth)]);
            if (insert_into(segment, key, value, true)) return;
            split(hash);
        }
    }

    std::uint64_t get(std::uint64_t key) {
        std::uint64_t hash = hash_of(key);
        auto *segment = at<Segment>(dir()->segment[prefix(hash, dir()->depth)]);
        for (auto &slot : segment->bucket[hash % kBuckets].slot)
            if (slot.key == key) return slot.value;
        return 0;
    }

    int holes() {
        Directory *d = dir();
        for (std::size_t i = 0; i < d->capacity; i++)
            if (!d->segment[i] || d->segment[i] >= root()->top) return 1;
        return 0;
    }
};

int main(int count, char **words) {
    if (count < 3) return 2;
    bool running = !std::strcmp(words[2], "run");
    int file = open(words[1], running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (file < 0 || (running && ftruncate(file, kRoom))) return 3;
    base = static_cast<char *>(mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (base == MAP_FAILED) return 3;
    ExtendibleHash hash;
    std::uint64_t keys = 600;
    if (running) {
        root()->top = sizeof(Root);
        clflush(root(), sizeof(Root));
        hash.create();
        std::memcpy(root()->magic, "EXTHASH", 8);
        clflush(root(), 8);
        for (std::uint64_t key = 1; key <= keys; key++) {
            hash.insert(key, key * 3);
            std::printf("%lu\n", key);
            std::fflush(stdout);
        }
        return 0;
    }
    if (std::memcmp(root()->magic, "EXTHASH", 8)) { std::puts("no table"); return 9; }
    if (hash.holes()) { std::puts("the directory has a hole"); return 12; }
    std::uint64_t acked = 0;
    FILE *acks = count > 3 ? std::fopen(words[3], "r") : nullptr;
    for (int c; acks && (c = std::getc(acks)) != EOF;) acked += c == '\n';
    for (std::uint64_t key = 1; key <= keys; key++) {
        std::uint64_t value = hash.get(key);
        if (value && value != key * 3) { std::printf("key %lu has the value %lu\n", key, value); return 10; }
        if (!value && key <= acked) { std::printf("key %lu is lost\n", key); return 11; }
    }
    return 0;
}
