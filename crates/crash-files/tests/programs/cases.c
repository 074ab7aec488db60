// Small programs that write files, each with one fault and mended: cases NAME bad|good run|check DIR [ACKS].
// A line with the word FAULT is what a report has to name.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define WRITE(fd, text) (void)!write(fd, text, strlen(text))
#define ACK() (void)!write(1, "done\n", 5)
#define MAKE(name) open(name, O_RDWR | O_CREAT, 0644)

static int good, acked;
static char page[2][3 * PAGE];

static void sync_folder(const char *name) {
    int fd = open(name, O_RDONLY);
    fsync(fd);
    close(fd);
}

static void put(const char *name, const char *bytes, size_t length) {
    int fd = MAKE(name);
    (void)!write(fd, bytes, length);
    fsync(fd);
    close(fd);
}

// The file's bytes and their number, or -1 if there is none.
static int get(const char *name, char *bytes) {
    int fd = open(name, O_RDONLY), length = 0, got;
    if (fd < 0) return -1;
    memset(bytes, 0, 4 * PAGE);
    while ((got = read(fd, bytes + length, 4 * PAGE - length)) > 0) length += got;
    close(fd);
    return length;
}

static int is(const char *name, const char *text) {
    static char bytes[4 * PAGE];
    int length = get(name, bytes);
    return length == (int)strlen(text) && !memcmp(bytes, text, length);
}

static int is_whole(const char *name, const char *bytes, int size) {
    static char found[4 * PAGE];
    return get(name, found) == size && !memcmp(found, bytes, size);
}

static void *append(void *name) {
    int fd = open(name, O_WRONLY | O_APPEND);
    WRITE(fd, "new\n");  // FAULT thread_without_sync
    if (good) fsync(fd);
    return NULL;
}

#define CASE(name) static void run_##name(void)
#define CHECK(name) static int check_##name(void)

CASE(create_without_folder) {
    int fd = MAKE("g");  // FAULT create_without_folder
    WRITE(fd, "new\n");
    fsync(fd);
    if (good) sync_folder(".");
    ACK();
}
CHECK(create_without_folder) { return !acked || is("g", "new\n"); }

CASE(rename_without_folder) {
    int fd = MAKE("t");
    WRITE(fd, "new\n");
    fsync(fd);
    rename("t", "f");  // FAULT rename_without_folder
    if (good) sync_folder(".");
    ACK();
}
CHECK(rename_without_folder) { return is("f", "new\n") || (!acked && is("f", "old\n")); }

CASE(rename_before_sync) {
    int fd = MAKE("t");
    WRITE(fd, "new\n");  // FAULT rename_before_sync
    if (good) fsync(fd);
    rename("t", "f");  // FAULT rename_before_sync
}
CHECK(rename_before_sync) { return is("f", "new\n") || is("f", "old\n"); }

CASE(rename_of_new) {
    int fd = MAKE("t");
    WRITE(fd, "new\n");  // FAULT rename_of_new
    if (good) fsync(fd);
    rename("t", "g");  // FAULT rename_of_new
}
CHECK(rename_of_new) { return access("g", F_OK) || is("g", "new\n"); }

CASE(append_without_sync) {
    int fd = open("f", O_WRONLY | O_APPEND);
    WRITE(fd, "new\n");  // FAULT append_without_sync
    if (good) fsync(fd);
    ACK();
}
CHECK(append_without_sync) { return !acked || is("f", "old\nnew\n"); }

CASE(append_torn) {
    int fd = open("f", O_WRONLY | O_APPEND);
    (void)!write(fd, page[1], 3 * PAGE);  // FAULT append_torn
    fsync(fd);
}
CHECK(append_torn) {
    static char bytes[4 * PAGE];
    int length = get("f", bytes);
    return good || length == 4 || length == 4 + 3 * PAGE;
}

CASE(size_before_data) {
    if (good) {
        put("t", page[1], PAGE);
        rename("t", "g");
        return;
    }
    int fd = MAKE("g");
    (void)!ftruncate(fd, PAGE);  // FAULT size_before_data
    (void)!pwrite(fd, page[1], PAGE, 0);  // FAULT size_before_data
    fsync(fd);
}
CHECK(size_before_data) {
    static char bytes[4 * PAGE];
    return get("g", bytes) < PAGE || is_whole("g", page[1], PAGE);
}

CASE(sync_of_another) {
    int f = open("f", O_WRONLY | O_APPEND), g = MAKE("g");
    WRITE(f, "new\n");  // FAULT sync_of_another
    fsync(good ? f : g);
    ACK();
}
CHECK(sync_of_another) { return !acked || is("f", "old\nnew\n"); }

CASE(sync_too_early) {
    int fd = open("f", O_WRONLY | O_APPEND);
    WRITE(fd, "n");
    fsync(fd);
    WRITE(fd, "ew\n");  // FAULT sync_too_early
    if (good) fsync(fd);
    ACK();
}
CHECK(sync_too_early) { return !acked || is("f", "old\nnew\n"); }

CASE(overwrite_in_place) {
    if (good) {
        put("t", page[1], 2 * PAGE);
        rename("t", "p");
        return;
    }
    int fd = open("p", O_WRONLY);
    (void)!pwrite(fd, page[1], 2 * PAGE, 0);  // FAULT overwrite_in_place
    fsync(fd);
}
CHECK(overwrite_in_place) {
    return is_whole("p", page[0], 2 * PAGE) || is_whole("p", page[1], 2 * PAGE);
}

// A page of data and, before it, a page with a mark that the data are there.
static int marked(void) {
    static char bytes[4 * PAGE];
    get("p", bytes);
    return bytes[0] != 'b' || !memcmp(bytes + PAGE, page[1], PAGE);
}

CASE(mark_before_data) {
    int fd = open("p", O_WRONLY);
    if (good) {
        (void)!pwrite(fd, page[1], PAGE, PAGE);
        fsync(fd);
    }
    (void)!pwrite(fd, "b", 1, 0);  // FAULT mark_before_data
    if (!good) (void)!pwrite(fd, page[1], PAGE, PAGE);  // FAULT mark_before_data
    fsync(fd);
}
CHECK(mark_before_data) { return marked(); }

CASE(mark_with_data) {
    int fd = open("p", O_WRONLY);
    (void)!pwrite(fd, page[1], PAGE, PAGE);  // FAULT mark_with_data
    if (good) fdatasync(fd);
    (void)!pwrite(fd, "b", 1, 0);  // FAULT mark_with_data
    fdatasync(fd);
}
CHECK(mark_with_data) { return marked(); }

CASE(truncate_before_rewrite) {
    if (good) {
        put("t", "new\n", 4);
        rename("t", "f");
        return;
    }
    int fd = open("f", O_WRONLY | O_TRUNC);  // FAULT truncate_before_rewrite
    WRITE(fd, "new\n");  // FAULT truncate_before_rewrite
    fsync(fd);
}
CHECK(truncate_before_rewrite) { return is("f", "new\n") || is("f", "old\n"); }

CASE(two_files) {
    if (good) {
        int both = open("both", O_WRONLY);
        (void)!pwrite(both, "new\nnew\n", 8, 0);
        return;
    }
    int f = open("f", O_WRONLY), h = open("h", O_WRONLY);
    (void)!pwrite(f, "new\n", 4, 0);  // FAULT two_files
    fsync(f);
    (void)!pwrite(h, "new\n", 4, 0);  // FAULT two_files
    fsync(h);
}
CHECK(two_files) {
    return good ? is("both", "old\nold\n") || is("both", "new\nnew\n") : is("f", "old\n") == is("h", "old\n");
}

static char *mapped(const char *name) {
    return mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, open(name, O_RDWR), 0);
}

static int stored(void) {
    static char bytes[4 * PAGE];
    get("p", bytes);
    return !acked || bytes[PAGE] == 'x';
}

CASE(msync_missing) {
    char *map = mapped("p");  // FAULT msync_missing
    map[PAGE] = 'x';
    if (good) msync(map, 2 * PAGE, MS_SYNC);
    ACK();  // FAULT msync_missing
}
CHECK(msync_missing) { return stored(); }

CASE(msync_of_another_page) {
    char *map = mapped("p");
    map[PAGE] = 'x';
    msync(map + (good ? PAGE : 0), PAGE, MS_SYNC);  // FAULT msync_of_another_page
    ACK();
}
CHECK(msync_of_another_page) { return stored(); }

CASE(msync_without_waiting) {
    char *map = mapped("p");
    map[PAGE] = 'x';
    msync(map, 2 * PAGE, good ? MS_SYNC : MS_ASYNC);  // FAULT msync_without_waiting
    ACK();  // FAULT msync_without_waiting
}
CHECK(msync_without_waiting) { return stored(); }

CASE(unlink_first) {
    put("t", "new\n", 4);
    sync_folder(".");
    if (!good) unlink("f");  // FAULT unlink_first
    rename("t", "f");  // FAULT unlink_first
}
CHECK(unlink_first) { return is("f", "new\n") || is("f", "old\n"); }

// An undo journal "j" of two pages of "p".
static int rolled_back(void) {
    static char undo[4 * PAGE];
    int fd, length = get("j", undo);
    if (length == 2 * PAGE + 1 && undo[2 * PAGE] == '!') {
        fd = open("p", O_WRONLY);
        (void)!write(fd, undo, 2 * PAGE);
        close(fd);
    }
    return is_whole("p", page[0], 2 * PAGE) || is_whole("p", page[1], 2 * PAGE);
}

static void journal(const char *except) {
    int fd = MAKE("j"), data = open("p", O_WRONLY);  // FAULT journal_folder
    (void)!write(fd, page[0], 2 * PAGE);  // FAULT journal_without_sync
    if (strcmp(except, "journal")) fsync(fd);
    WRITE(fd, "!");  // FAULT journal_without_sync
    if (strcmp(except, "journal")) fsync(fd);
    if (strcmp(except, "folder")) sync_folder(".");
    (void)!pwrite(data, page[1], 2 * PAGE, 0);  // FAULT data_after_journal journal_folder journal_without_sync
    if (strcmp(except, "data")) fsync(data);
    unlink("j");  // FAULT data_after_journal
    sync_folder(".");
}

CASE(data_after_journal) { journal(good ? "" : "data"); }
CHECK(data_after_journal) { return rolled_back(); }

CASE(journal_without_sync) { journal(good ? "" : "journal"); }
CHECK(journal_without_sync) { return rolled_back(); }

CASE(journal_folder) { journal(good ? "" : "folder"); }
CHECK(journal_folder) { return rolled_back(); }

CASE(folder_in_folder) {
    mkdir("s", 0755);  // FAULT folder_in_folder
    put("s/f", "new\n", 4);
    sync_folder("s");
    if (good) sync_folder(".");
    ACK();
}
CHECK(folder_in_folder) { return !acked || is("s/f", "new\n"); }

CASE(move_between_folders) {
    rename("a/f", "b/f");  // FAULT move_between_folders
    sync_folder("b");
    if (good) sync_folder("a");
    ACK();
}
CHECK(move_between_folders) { return !acked || (is("b/f", "old\n") && access("a/f", F_OK)); }

CASE(link_without_folder) {
    put("t", "new\n", 4);
    (void)!link("t", "g");  // FAULT link_without_folder
    if (good) sync_folder(".");
    ACK();
}
CHECK(link_without_folder) { return !acked || is("g", "new\n"); }

CASE(wiped_without_sync) {
    int fd = open("f", O_WRONLY);
    (void)!ftruncate(fd, 0);  // FAULT wiped_without_sync
    if (good) fsync(fd);
    ACK();
}
CHECK(wiped_without_sync) { return !acked || is("f", ""); }

CASE(opened_without_dsync) {
    int fd = open("f", O_WRONLY | O_APPEND | (good ? O_DSYNC : 0));
    WRITE(fd, "new\n");  // FAULT opened_without_dsync
    ACK();
}
CHECK(opened_without_dsync) { return !acked || is("f", "old\nnew\n"); }

CASE(child_without_sync) {
    if (!fork()) {
        int fd = open("f", O_WRONLY | O_APPEND);
        WRITE(fd, "new\n");  // FAULT child_without_sync
        if (good) fsync(fd);
        _exit(0);
    }
    wait(NULL);
    ACK();
}
CHECK(child_without_sync) { return !acked || is("f", "old\nnew\n"); }

CASE(thread_without_sync) {
    pthread_t thread;
    pthread_create(&thread, NULL, append, "f");
    pthread_join(thread, NULL);
    ACK();
}
CHECK(thread_without_sync) { return !acked || is("f", "old\nnew\n"); }

CASE(error_ignored) {
    int fd = open("f", O_WRONLY | O_APPEND);
    if (write(fd, "new\n", 4) != 4 && good) exit(1);  // FAULT error_ignored
    if (fsync(fd) && good) exit(1);  // FAULT error_ignored
    ACK();
}
CHECK(error_ignored) { return !acked || is("f", "old\nnew\n"); }

CASE(error_tried_again) {
    int fd = open("f", O_WRONLY | O_APPEND);
    if (write(fd, "new\n", 4) != 4) exit(1);  // FAULT error_tried_again
    while (fsync(fd))  // FAULT error_tried_again
        if (good) exit(1);
    ACK();
}
CHECK(error_tried_again) { return !acked || is("f", "old\nnew\n"); }

#define ROW(name) {#name, run_##name, check_##name}
static const struct {
    const char *name;
    void (*run)(void);
    int (*check)(void);
} cases[] = {
    ROW(create_without_folder), ROW(rename_without_folder), ROW(rename_before_sync), ROW(rename_of_new),
    ROW(append_without_sync), ROW(append_torn), ROW(size_before_data), ROW(sync_of_another), ROW(sync_too_early),
    ROW(overwrite_in_place), ROW(mark_before_data), ROW(mark_with_data), ROW(truncate_before_rewrite),
    ROW(two_files), ROW(msync_missing), ROW(msync_of_another_page), ROW(msync_without_waiting), ROW(unlink_first),
    ROW(data_after_journal), ROW(journal_without_sync), ROW(journal_folder), ROW(folder_in_folder),
    ROW(move_between_folders), ROW(link_without_folder), ROW(wiped_without_sync), ROW(opened_without_dsync),
    ROW(child_without_sync), ROW(thread_without_sync), ROW(error_ignored),
    ROW(error_tried_again),
};

int main(int count, char **words) {
    char acks[64] = "";
    if (count > 5) {
        FILE *file = fopen(words[5], "r");
        acked = file && fread(acks, 1, sizeof acks, file) > 0;
    }
    memset(page[0], 'a', sizeof page[0]);
    memset(page[1], 'b', sizeof page[1]);
    good = count > 2 && !strcmp(words[2], "good");
    if (count < 5 || chdir(words[4])) return 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, words[1])) continue;
        if (!strcmp(words[3], "run")) cases[i].run();
        return strcmp(words[3], "run") && !cases[i].check() ? puts("a promise is broken"), 1 : 0;
    }
    return 2;
}
