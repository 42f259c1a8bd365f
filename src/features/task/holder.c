#include "task/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/fd.h"
#include "base/text.h"

/* A zombie counts as dead. */
static bool lives(int pid)
{
    char path[32], text[2048];
    const char *end;
    if (kill(pid, 0) < 0 && errno == ESRCH)
        return false;
    if (px_fmt(path, sizeof path, "/proc/%d/stat", pid) < 0 ||
        px_read_file(AT_FDCWD, path, text, sizeof text) == -ENOENT)
        return false;
    end = strrchr(text, ')');
    return !end || end[1] == '\0' || (end[2] != 'Z' && end[2] != 'X');
}

/* "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF" */
static int holder_of(const struct stat *st, FILE *locks)
{
    char line[256];
    while (fgets(line, sizeof line, locks)) {
        int pid;
        unsigned long inode;
        if (sscanf(line, "%*s FLOCK %*s %*s %d %*x:%*x:%lu", &pid, &inode) == 2 && inode == st->st_ino &&
            pid > 0)
            return pid;
    }
    return 0;
}

bool px_workspace_holder_lives(int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    FILE *locks = fopen("/proc/locks", "re");
    int pid = locks ? holder_of(&st, locks) : 0;
    if (locks)
        (void)fclose(locks);
    return pid > 0 && lives(pid);
}
