/* race.c - race A B: exchanges two names of a directory as fast as it can, for ten seconds at most (A22). */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 99;
    time_t end = time(NULL) + 10;
    for (unsigned i = 0; i % 4096 || time(NULL) < end; i++)
        if (syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], 2 /* RENAME_EXCHANGE */) < 0)
            return 1;
    return 0;
}
