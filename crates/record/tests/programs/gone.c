/* Memory that goes without munmap: a shared file that is cut, and System V's memory that is detached. Its lines are
   still dirty in the caches when the program ends. And memory that processes share, whose file is /dev/zero. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { BYTES = 1 << 16 };

int main(int count, char **words) {
    int file = open(words[1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, BYTES)) return 1;
    char *mapped = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memset(mapped, 1, BYTES);
    if (ftruncate(file, 0)) return 2;
    int segment = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
    char *attached = shmat(segment, 0, 0);
    memset(attached, 2, BYTES);
    shmctl(segment, IPC_RMID, 0);
    if (shmdt(attached)) return 3;
    char *shared = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(shared, 3, BYTES);
    return count == 2 ? 0 : 4;
}
