// Accounts of 16 bytes, some over the end of a line, changed in place under an undo log: `undo FILE run` moves amounts, `undo FILE check`
// puts back what the log has and looks if each account is whole and nothing is lost. `clflushopt`, and `mfence` for a fence.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ACCOUNTS 12
#define EACH 1000
struct __attribute__((packed)) account { uint64_t amount, check, owner; };
struct log { uint64_t valid, count, pad[6]; struct { uint64_t account, amount, check; } old[2]; uint64_t more[2]; };
struct bank { uint64_t ready, pad[7]; struct log log; struct account accounts[ACCOUNTS]; uint64_t moved; };

static struct bank *bank;

static void flush(const void *at, size_t bytes) {
    for (uintptr_t line = (uintptr_t)at & ~63ul; line < (uintptr_t)at + bytes; line += 64)
        __asm__ volatile("clflushopt %0" : : "m"(*(const char *)line) : "memory");
}
static void fence(void) { __asm__ volatile("mfence" ::: "memory"); }
static void persist(const void *at, size_t bytes) { flush(at, bytes); fence(); }

static void set(struct account *account, uint64_t amount) {
    account->amount = amount;
    account->check = ~amount;
    flush(account, 16);
}

static void move(uint64_t from, uint64_t to, uint64_t amount) {
    struct log *log = &bank->log;
    uint64_t both[] = {from, to};
    for (int i = 0; i < 2; i++) {
        log->old[i].account = both[i];
        log->old[i].amount = bank->accounts[both[i]].amount;
        log->old[i].check = bank->accounts[both[i]].check;
    }
    persist(log->old, sizeof log->old);
    log->valid = 1;
    persist(&log->valid, 8);
    set(&bank->accounts[from], bank->accounts[from].amount - amount);
    set(&bank->accounts[to], bank->accounts[to].amount + amount);
    fence();
    log->valid = 0;
    persist(&log->valid, 8);
}

static void recover(void) {
    for (int i = 0; i < 2 && bank->log.valid; i++) {
        struct account *account = &bank->accounts[bank->log.old[i].account];
        account->amount = bank->log.old[i].amount;
        account->check = bank->log.old[i].check;
        flush(account, 16);
    }
    fence();
    bank->log.valid = 0;
    persist(&bank->log.valid, 8);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    int descriptor = open(words[1], running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (descriptor < 0 || (running && ftruncate(descriptor, sizeof(struct bank)))) return 3;
    bank = mmap(NULL, sizeof *bank, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (bank == MAP_FAILED) return 3;
    if (running) {
        for (uint64_t i = 0; i < ACCOUNTS; i++) {
            bank->accounts[i].owner = i;
            set(&bank->accounts[i], EACH);
        }
        persist(bank->accounts, sizeof bank->accounts);
        bank->ready = 1;
        persist(&bank->ready, 8);
        for (uint64_t i = 0; i < 40; i++) move(i * 5 % ACCOUNTS, (i * 5 + 1 + i % 7) % ACCOUNTS, i + 1);
        return 0;
    }
    if (!bank->ready) return 0;
    recover();
    uint64_t all = 0;
    for (uint64_t i = 0; i < ACCOUNTS; i++) {
        if (bank->accounts[i].check != ~bank->accounts[i].amount) { printf("account %lu is torn\n", i); return 10; }
        all += bank->accounts[i].amount;
    }
    if (all != ACCOUNTS * EACH) { printf("%lu in all\n", all); return 11; }
    return 0;
}
