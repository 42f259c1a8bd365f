/* files - times a thousand reads of one file of 4 KB, four folders deep, or one list of 50,000 files; requests as in bench.h.
 *
 *     files plain|open|read|find|names|list DIRECTORY
 *
 * plain opens by the whole path, reads and closes; open does the same through px_files_open, whose check the goal is
 * about; read is px_files_read, which also allocates, looks whether it is text and counts its characters. find is the
 * program, whose output is read and counted, names is px_files_list of the same, sorted, and list the same with sizes and
 * times. The files are made below DIRECTORY. Alone: echo 'run 100' | files open /tmp/x */
#include "bench.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/files.h>

enum { TIMES = 1000, SIZE = 4096, FOLDERS = 500, EACH = 100 };

struct job {
    struct px_files *files;
    char path[4096];
    char data[SIZE];
    bool names_only;
    struct px_err err;
};

static int read_and_close(struct job *job, int fd)
{
    ssize_t n = read(fd, job->data, SIZE);
    (void)close(fd);
    return n == SIZE ? 0 : 1;
}

static int plain(void *arg)
{
    struct job *job = arg;
    int status = 0;
    for (int i = 0; i < TIMES && status == 0; i++) {
        int fd = open(job->path, O_RDONLY | O_CLOEXEC);
        status = fd < 0 ? 1 : read_and_close(job, fd);
    }
    return status;
}

static int checked(void *arg)
{
    struct job *job = arg;
    int status = 0;
    for (int i = 0; i < TIMES && status == 0; i++) {
        int fd;
        status = px_files_open(job->files, "root/a/b/c/d/file.txt", &fd, &job->err) < 0 ? 1 : read_and_close(job, fd);
    }
    return status;
}

static int text(void *arg)
{
    struct job *job = arg;
    int status = 0;
    for (int i = 0; i < TIMES && status == 0; i++) {
        struct px_files_text t = {0};
        status = px_files_read(job->files, "root/a/b/c/d/file.txt", 0, SIZE, &t, &job->err) < 0 || t.chars != SIZE;
        px_files_text_done(&t);
    }
    return status;
}

static int find(void *arg)
{
    struct job *job = arg;
    char command[sizeof job->path + 32];
    int lines = 0;
    if (snprintf(command, sizeof command, "exec find '%s' -type f", job->path) >= (int)sizeof command)
        return 1;
    FILE *out = popen(command, "r");
    if (!out)
        return 1;
    for (size_t n; (n = fread(job->data, 1, SIZE, out)) > 0;)
        for (size_t i = 0; i < n; i++)
            lines += job->data[i] == '\n';
    return pclose(out) == 0 && lines == FOLDERS * EACH ? 0 : 1;
}

static int list(void *arg)
{
    struct job *job = arg;
    struct px_files_entries found = {0};
    const struct px_files_query query = {.path = "root", .max_results = FOLDERS * EACH + 1, .names_only = job->names_only};
    int status = px_files_list(job->files, &query, &found, &job->err) < 0 || found.count != FOLDERS * EACH;
    px_files_entries_done(&found);
    return status;
}

static int names(void *arg)
{
    struct job *job = arg;
    job->names_only = true;
    return list(job);
}

/* Folders in folders, as a project has them. */
static int plant(const char *dir)
{
    char name[64];
    int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < FOLDERS * EACH; i++) {
        int folder = i / EACH;
        if (i % EACH == 0) {
            (void)snprintf(name, sizeof name, "part%02d", folder / 20);
            (void)mkdirat(top, name, 0755);
            (void)snprintf(name, sizeof name, "part%02d/folder%03d", folder / 20, folder);
            (void)mkdirat(top, name, 0755);
        }
        (void)snprintf(name, sizeof name, "part%02d/folder%03d/file%05d.txt", folder / 20, folder, i);
        int fd = openat(top, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
            return -1;
        (void)close(fd);
    }
    return close(top);
}

static int prepare_list(const char *dir, struct job *job)
{
    struct px_files_root root = {.name = "root", .dir = dir, .create = true};
    if (px_files_new(&root, 1, &job->files, &job->err) < 0)
        return -1;
    return snprintf(job->path, sizeof job->path, "%s", dir) < (int)sizeof job->path ? plant(dir) : -1;
}

static int prepare(const char *dir, struct job *job)
{
    struct px_files_root root = {.name = "root", .dir = dir, .create = true, .writable = true};
    memset(job->data, 'a', SIZE);
    if (px_files_new(&root, 1, &job->files, &job->err) < 0 ||
        px_files_write(job->files, "root/a/b/c/d/file.txt", job->data, SIZE, NULL, &job->err) < 0)
        return -1;
    return snprintf(job->path, sizeof job->path, "%s/a/b/c/d/file.txt", dir) < (int)sizeof job->path ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*once)(void *);
        int (*prepare)(const char *, struct job *);
    } modes[] = {{"plain", plain, prepare}, {"open", checked, prepare}, {"read", text, prepare}, {"find", find, prepare_list},
                 {"list", list, prepare_list}, {"names", names, prepare_list}};
    struct job job = {0};
    int status = 2;

    for (size_t i = 0; argc == 3 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0 && modes[i].prepare(argv[2], &job) == 0)
            status = serve(modes[i].once, &job);
    if (status != 0)
        fprintf(stderr, "usage: files plain|open|read|find|names|list DIRECTORY\n%s\n", job.err.what);
    px_files_free(job.files);
    return status;
}
