/* A directory for a model: it can read and write Markdown there, and is told what it can do when it tries something else.
 *
 *     cc files.c -lpx -o files && ./files */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <px/files.h>

/* What a model asks for, and whether it gets it. */
static const struct {
    const char *op, *path, *content;
    int wanted;
} asked[] = {
    {"write", "notes/today.md", "buy milk\n", 0},
    {"read", "notes/today.md", NULL, 0},
    {"write", "notes/run.sh", "rm -rf /\n", -1},
    {"read", "notes/../../etc/passwd", NULL, -1},
    {"delete", "notes/today.md", NULL, 0},
};

static int answer(const struct px_files *files, size_t i)
{
    struct px_err e = {0};
    struct px_files_answer a = {0};
    struct px_files_ask ask = {.op = asked[i].op, .path = asked[i].path, .content = asked[i].content,
                               .content_len = asked[i].content ? strlen(asked[i].content) : 0};
    int r = px_files_call(files, &ask, &a, &e);
    char *json = NULL;

    if (r < 0 && px_files_error_json(files, &e, &json, NULL) < 0)
        return 1;
    printf("%s", r < 0 ? json : a.json);
    free(json);
    px_files_answer_done(&a);
    return r != asked[i].wanted;
}

int main(void)
{
    static const char *const markdown[] = {".md", NULL};
    char dir[] = "/tmp/px-example-XXXXXX";
    struct px_files *files = NULL;
    struct px_err e = {0};
    int status = 0;

    if (!mkdtemp(dir))
        return 1;
    struct px_files_root root = {.name = "notes", .dir = dir, .writable = true, .suffixes = markdown};
    if (px_files_new(&root, 1, &files, &e) < 0) {
        fprintf(stderr, "PX%03d  %s\n", e.code, e.what);
        status = 1;
    }
    for (size_t i = 0; files && i < sizeof asked / sizeof asked[0]; i++)
        status |= answer(files, i);
    px_files_free(files);
    return rmdir(dir) < 0 ? 1 : status;
}
