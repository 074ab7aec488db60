// Chains of deltas behind a mapping table, which two threads extend by compare and exchange; a long chain is made into a page. One helps
// another's pending entry to be persistent before it relies on it. `deltas FILE run` and `deltas FILE check [ACKS]`.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace pm {
inline void persist(const void *what, std::size_t bytes) {
    auto p = reinterpret_cast<std::uintptr_t>(what) & ~63ul;
    for (; p < reinterpret_cast<std::uintptr_t>(what) + bytes; p += 64) asm volatile("clwb (%0)" : : "r"(p) : "memory");
    asm volatile("sfence" ::: "memory");
}
template <typename T> void persist(const T &what) { persist(&what, sizeof what); }
}  // namespace pm

using Offset = std::uint64_t;
enum class Kind : std::uint64_t { Insert = 1, Remove, Page };
struct Delta { Kind kind; Offset next; std::uint64_t key, value; };
struct Page { Kind kind; std::uint64_t count; std::array<std::pair<std::uint64_t, std::uint64_t>, 64> items; };

constexpr std::size_t kRoom = 2 << 20, kIds = 16;
constexpr std::uint64_t kKeys = 160;
struct Store {
    std::uint64_t magic, pad[7];
    std::atomic<std::uint64_t> top;
    std::uint64_t more[7];
    std::array<std::atomic<Offset>, kIds> mapping;
};

class Tree {
    char *base;
    Store *store() { return reinterpret_cast<Store *>(base); }

    template <typename T> T *at(Offset offset) { return reinterpret_cast<T *>(base + offset); }

    template <typename T> Offset allocate() {
        Offset offset = store()->top.fetch_add((sizeof(T) + 63) & ~63ul);
        if (offset + sizeof(T) > kRoom) std::exit(5);
        pm::persist(store()->top);
        return offset;
    }

    int length(Offset offset) {
        int length = 0;
        for (; offset && at<Delta>(offset)->kind != Kind::Page; offset = at<Delta>(offset)->next) length++;
        return length;
    }

    void consolidate(std::size_t id) {
        Offset head = store()->mapping[id].load();
        pm::persist(store()->mapping[id]);
        Offset made = allocate<Page>();
        Page *page = at<Page>(made);
        page->kind = Kind::Page;
        std::vector<std::uint64_t> seen;
        auto take = [&](std::uint64_t key, std::uint64_t value, bool there) {
            for (auto one : seen) if (one == key) return;
            seen.push_back(key);
            if (there) page->items[page->count++] = {key, value};
        };
        for (Offset o = head; o;) {
            auto *delta = at<Delta>(o);
            if (delta->kind == Kind::Page) {
                auto *old = at<Page>(o);
                for (std::uint64_t i = 0; i < old->count; i++) take(old->items[i].first, old->items[i].second, true);
                break;
            }
            take(delta->key, delta->value, delta->kind == Kind::Insert);
            o = delta->next;
        }
        pm::persist(*page);
        if (store()->mapping[id].compare_exchange_strong(head, made)) pm::persist(store()->mapping[id]);
    }

    void extend(Kind kind, std::uint64_t key, std::uint64_t value) {
        std::size_t id = key % kIds;
        Offset made = allocate<Delta>();
        auto *delta = at<Delta>(made);
        Offset head = store()->mapping[id].load();
        do {
            pm::persist(store()->mapping[id]);
            *delta = {kind, head, key, value};
            pm::persist(*delta);
        } while (!store()->mapping[id].compare_exchange_weak(head, made));
        pm::persist(store()->mapping[id]);
        if (length(made) > 5) consolidate(id);
    }

  public:
    explicit Tree(char *base) : base(base) {}
    void create() {
        store()->top = sizeof(Store);
        pm::persist(*store());
        store()->magic = 0xDE17A;
        pm::persist(store()->magic);
    }
    bool there() { return store()->magic == 0xDE17A; }
    void insert(std::uint64_t key, std::uint64_t value) { extend(Kind::Insert, key, value); }
    void remove(std::uint64_t key) { extend(Kind::Remove, key, 0); }

    std::uint64_t get(std::uint64_t key) {
        for (Offset o = store()->mapping[key % kIds]; o;) {
            if (o >= kRoom) { std::puts("a chain leads nowhere"); std::exit(13); }
            auto *delta = at<Delta>(o);
            if (delta->kind == Kind::Page) {
                auto *page = at<Page>(o);
                for (std::uint64_t i = 0; i < page->count; i++) if (page->items[i].first == key) return page->items[i].second;
                return 0;
            }
            if (delta->kind != Kind::Insert && delta->kind != Kind::Remove) { std::puts("no delta"); std::exit(12); }
            if (delta->key == key) return delta->kind == Kind::Insert ? delta->value : 0;
            o = delta->next;
        }
        return 0;
    }
};

int main(int count, char **words) {
    if (count < 3) return 2;
    bool running = !std::strcmp(words[2], "run");
    int file = open(words[1], running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (file < 0 || (running && ftruncate(file, kRoom))) return 3;
    Tree tree(static_cast<char *>(mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)));
    if (running) {
        tree.create();
        std::mutex out;
        auto work = [&](std::uint64_t first) {
            for (std::uint64_t key = first; key <= kKeys; key += 2) {
                tree.insert(key, key * 11);
                if (key % 5 == 0) tree.remove(key);
                std::lock_guard<std::mutex> held(out);
                std::printf("%lu\n", key);
                std::fflush(stdout);
            }
        };
        std::thread one(work, 1), other(work, 2);
        one.join();
        other.join();
        return 0;
    }
    if (!tree.there()) { std::puts("no tree"); return 9; }
    for (std::uint64_t key = 1; key <= kKeys; key++) {
        std::uint64_t value = tree.get(key);
        if (value && value != key * 11) { std::printf("key %lu: %lu\n", key, value); return 10; }
    }
    FILE *acks = count > 3 ? std::fopen(words[3], "r") : nullptr;
    for (std::uint64_t key; acks && std::fscanf(acks, "%lu", &key) == 1;) {
        if (key % 5 && !tree.get(key)) { std::printf("key %lu is lost\n", key); return 11; }
        if (key % 5 == 0 && tree.get(key)) { std::printf("key %lu is back\n", key); return 14; }
    }
    return 0;
}
