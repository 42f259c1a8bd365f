/* files - times a thousand reads of one file of 4 KB, four folders deep; requests as in bench.h.
 *
 *     files plain|open|read DIRECTORY
 *
 * plain opens by the whole path, reads and closes; open does the same through px_files_open, whose check the goal is
 * about; read is px_files_read, which also allocates, looks whether it is text and counts its characters. The file is
 * made below DIRECTORY. Alone: echo 'run 100' | files open /tmp/x */
#include "bench.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/files.h>

enum { TIMES = 1000, SIZE = 4096 };

struct job {
    struct px_files *files;
    char path[4096];
    char data[SIZE];
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
    } modes[] = {{"plain", plain}, {"open", checked}, {"read", text}};
    struct job job = {0};
    int status = 2;

    if (argc == 3 && prepare(argv[2], &job) == 0)
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
            if (strcmp(argv[1], modes[i].name) == 0)
                status = serve(modes[i].once, &job);
    if (status != 0)
        fprintf(stderr, "usage: files plain|open|read DIRECTORY\n%s\n", job.err.what);
    px_files_free(job.files);
    return status;
}
