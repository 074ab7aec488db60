// Becomes the program that its arguments say; status 3 if that fails.
#include <unistd.h>

int main(int count, char **arguments) {
    if (count > 1) execv(arguments[1], arguments + 1);
    return 3;
}
