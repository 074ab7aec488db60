// A hash map of C++ templates: `typed FILE run` and `typed FILE check`.
extern "C" {
#include "pm.h"
}
#include <cstddef>

namespace store {
template <typename T> void persist(const T *what) {
    flush_all(what, sizeof(T));
    fence();
}

template <typename Key, typename Value, std::size_t Buckets> class Map {
  public:
    struct Entry { Key key; Value value; uint64_t sum; bool used; };

    void insert(const Key &key, const Value &value) {
        Entry *entry = place(key);
        entry->key = key;
        entry->value = value;
        entry->sum = check(key, value);
        persist(entry);
        entry->used = true;
        persist(&entry->used);
    }

    void erase(const Key &key) {
        Entry *entry = place(key);
        entry->used = false;
        persist(&entry->used);
        entry->sum = 0;
        persist(&entry->sum);
    }

    bool whole() const {
        for (const Entry &entry : entries)
            if (entry.used && entry.sum != check(entry.key, entry.value)) return false;
        return true;
    }

  private:
    static uint64_t check(const Key &key, const Value &value) {
        uint64_t sum = static_cast<uint64_t>(key);
        for (uint64_t word : value.words) sum = sum * 31 + word;
        return ~sum;
    }
    Entry *place(const Key &key) { return &entries[key % Buckets]; }
    Entry entries[Buckets];
};
}

struct Text { uint64_t words[14]; };
using Texts = store::Map<uint64_t, Text, 32>;

int main(int count, char **words) {
    if (count < 3) return 2;
    bool running = !strcmp(words[2], "run");
    auto *map = static_cast<Texts *>(pool(words[1], sizeof(Texts), 0, running));
    if (running) {
        for (uint64_t i = 1; i < 30; i++) {
            Text text;
            for (uint64_t k = 0; k < 14; k++) text.words[k] = i * 100 + k;
            map->insert(i, text);
            if (i % 5 == 0) map->erase(i - 2);
        }
        return 0;
    }
    if (!map->whole()) { puts("an entry is not whole"); return 10; }
    return 0;
}
