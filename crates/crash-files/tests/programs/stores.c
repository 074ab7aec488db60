// Puts 8 items into a database, each synced, and prints "KEY VALUE" after each: stores DIR. -DSTORE=lmdb|leveldb|rocksdb.
// LMDB does not sync a database that it makes before its first commit: stores DIR made only makes it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define lmdb 1
#define leveldb 2
#define rocksdb 3

static char key[16], value[1200];

static void next(int i) {
    sprintf(key, "key%d", i * 5 % 8);
    memset(value, 'a' + i, sizeof value - 1);
    value[i % 3 ? 30 : sizeof value - 1] = 0;
}

static void promise(void) {
    printf("%s %s\n", key, value);
    fflush(stdout);
}

static void check(int failed, const char *what) {
    if (failed) fprintf(stderr, "%s failed\n", what), exit(1);
}

#if STORE == lmdb
#include <lmdb.h>
int main(int count, char **words) {
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_dbi database;
    check(count < 2 || mdb_env_create(&environment) || mdb_env_set_maxdbs(environment, 4) ||
              mdb_env_open(environment, words[1], 0, 0644),
          "open");
    if (count > 2) return mdb_env_sync(environment, 1);
    for (int i = 0; i < 8; i++) {
        next(i);
        MDB_val k = {strlen(key), key}, v = {strlen(value), value};
        check(mdb_txn_begin(environment, NULL, 0, &transaction) ||
                  mdb_dbi_open(transaction, "items", MDB_CREATE, &database) ||
                  mdb_put(transaction, database, &k, &v, 0) || mdb_txn_commit(transaction),
              "put");
        promise();
    }
    return 0;
}
#else
#if STORE == leveldb
#include <leveldb/c.h>
#else
#include <rocksdb/c.h>
#endif
#define DO(name) JOIN(JOIN(STORE, _), name)
#undef leveldb
#undef rocksdb
int main(int count, char **words) {
    char *problem = NULL;
    check(count != 2, "call");
    for (int i = 0; i < 8;) {
        // Opened again and again: the log is made a table, and the manifest is written anew.
        void *options = DO(options_create)(), *how = DO(writeoptions_create)();
        DO(options_set_create_if_missing)(options, 1);
        void *database = DO(open)(options, words[1], &problem);
        check(problem != NULL, "open");
        DO(writeoptions_set_sync)(how, 1);
        for (int end = i + 4; i < end; i++) {
            next(i);
            DO(put)(database, how, key, strlen(key), value, strlen(value), &problem);
            check(problem != NULL, "put");
            promise();
        }
        DO(close)(database);
    }
    return 0;
}
#endif
