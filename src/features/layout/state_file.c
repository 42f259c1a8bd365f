#include "layout/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "layout/locate.h"
#include "store/document.h"

enum { STATE_MAX = 1 << 20 };

#define PLACE ".px"             /* state: no path that is read here is written to or run without a check */

static const struct {
    const char *outer, *inner, *name;           /* {"current_env":{"python":{"path":..}}} */
    size_t offset;
} members[] = {
    {"current_env", NULL, "id", offsetof(struct px_made_env, id)},
    {"current_env", NULL, "lock_id", offsetof(struct px_made_env, lock_id)},
    {"current_env", NULL, "platform", offsetof(struct px_made_env, platform)},
    {"current_env", NULL, "site_packages", offsetof(struct px_made_env, site_packages)},
    {"current_env", NULL, "env_path", offsetof(struct px_made_env, env_path)},
    {"current_env", NULL, "profile_oid", offsetof(struct px_made_env, profile_oid)},
    {"current_env", "python", "path", offsetof(struct px_made_env, python_path)},
    {"current_env", "python", "version", offsetof(struct px_made_env, python_version)},
    {"runtime", NULL, "path", offsetof(struct px_made_env, runtime_path)},
    {"runtime", NULL, "version", offsetof(struct px_made_env, runtime_version)},
    {"runtime", NULL, "platform", offsetof(struct px_made_env, runtime_platform)},
};

static char **text_at(struct px_made_env *env, size_t i)
{
    return (char **)((char *)env + members[i].offset);
}

void px_layout_state_file_env_done(struct px_made_env *env)
{
    for (size_t i = 0; i < PX_COUNT_OF(members); i++)
        free(*text_at(env, i));
    *env = (struct px_made_env){0};
}

static const char *file_name(bool workspace)
{
    return workspace ? "workspace-state.json" : "state.json";
}

/* ---- reading ---- */

static int invalid(const char *name, struct px_err *e)
{
    px_fail(e, PX_E_ENV, 0, "the project's " PLACE "/%s cannot be read", name);
    (void)px_why(e, "It is not what px writes there.");
    return px_detail(e, "reason", "invalid_state");
}

static const char *member_text(const json_t *document, size_t i)
{
    const json_t *object = json_object_get(document, members[i].outer);
    if (members[i].inner)
        object = json_object_get(object, members[i].inner);
    const char *text = px_document_text(object, members[i].name);
    /* A member's older name. */
    return text || strcmp(members[i].name, "lock_id") != 0 ? text : px_document_text(object, "lock_hash");
}

static int take(const json_t *document, struct px_made_env *ret_env)
{
    struct px_made_env env = {0};
    for (size_t i = 0; i < PX_COUNT_OF(members); i++) {
        const char *text = member_text(document, i);
        if (text && !(*text_at(&env, i) = strdup(text))) {
            px_layout_state_file_env_done(&env);
            return -ENOMEM;
        }
    }
    *ret_env = env;
    return 0;
}

int px_layout_state_file_read(int dir, bool workspace, struct px_made_env *ret_env, struct px_err *e)
{
    char path[64];
    px_auto_buf struct px_buf text = PX_BUF(STATE_MAX);
    px_auto(px_document) json_t *document = NULL;
    (void)px_fmt(path, sizeof path, PLACE "/%s", file_name(workspace));
    int r = px_buf_read_file(dir, path, STATE_MAX, &text);
    if (r > 0)
        return 1;
    if (r < 0 || px_document_read(px_buf_text(&text), text.len, PLACE "/state.json", PX_E_ENV, &document, e) < 0 ||
        !json_is_object(document) || !json_is_object(json_object_get(document, "current_env")))
        return invalid(file_name(workspace), e);
    r = take(document, ret_env);
    return r < 0 ? px_fail(e, PX_E_MEMORY, r, "the project's state") : 0;
}

/* ---- writing ---- */

int px_layout_replace_file(int dir, const char *name, const void *data, unsigned long size)
{
    char temporary[64];
    unsigned long long random = 0;
    struct stat st;
    mode_t mode = 0;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISREG(st.st_mode))
            return S_ISLNK(st.st_mode) ? -ELOOP
                                       : -EEXIST; /* a link is intentional: it is not replaced by a file */
        mode = st.st_mode & 0777;
    }
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EAGAIN;
    (void)px_fmt(temporary, sizeof temporary, ".px-%016llx", random);
    px_auto_fd int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    int r = px_write_full(fd, data, size);
    if (r >= 0 && mode && fchmod(fd, mode) < 0)
        r = -errno;
    if (r >= 0 && (fsync(fd) < 0 || renameat(dir, temporary, dir, name) < 0))
        r = -errno;
    if (r < 0) {
        (void)unlinkat(dir, temporary, 0);
        return r;
    }
    return fsync(dir) < 0 ? -errno : 0;
}

int px_layout_state_file_look(int dir)
{
    int fd = openat(dir, PLACE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int px_layout_state_file_place(int dir, struct px_err *e)
{
    static const char all[] = "*\n";
    if (mkdirat(dir, PLACE, 0777) < 0 && errno != EEXIST)
        return px_fail(e, PX_E_IO, errno, "cannot make the project's " PLACE);
    int fd = px_layout_state_file_look(dir);
    if (fd < 0)
        return px_fail(e, PX_E_IO, fd, "cannot open the project's " PLACE);
    if (faccessat(fd, ".gitignore", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        (void)px_layout_replace_file(fd, ".gitignore", all, sizeof all - 1);   /* a convenience; failures are ignored */
    return fd;
}

/* Links .px/envs/current to the environment, for editors and other tools. If a repository has a link at .px/envs,
 * nothing is written there. */
static int point(int place, const char *path)
{
    static const char temporary[] = ".current";
    if (mkdirat(place, "envs", 0777) < 0 && errno != EEXIST)
        return -errno;
    px_auto_fd int envs =
        openat(place, "envs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); /* a repository may contain a link */
    if (envs < 0)
        return -errno;
    if ((unlinkat(envs, temporary, 0) < 0 && errno != ENOENT) || symlinkat(path, envs, temporary) < 0)
        return errno == EEXIST ? 0 : -errno;    /* another sync of the same project is about to do the same */
    return renameat(envs, temporary, envs, "current") < 0 && errno != ENOENT ? -errno : 0;
}

static void write_member(struct px_json *j, const struct px_made_env *env, size_t i)
{
    const char *text = *(char *const *)((const char *)env + members[i].offset);
    if (text)
        px_json_text(j, members[i].name, text);
}

static void write_members(struct px_json *j, const struct px_made_env *env, const char *outer, const char *inner)
{
    px_json_object(j, inner ? inner : outer);
    for (size_t i = 0; i < PX_COUNT_OF(members); i++)
        if (px_equal(members[i].outer, outer) && px_equal(members[i].inner, inner))
            write_member(j, env, i);
    if (!inner && px_equal(outer, "current_env"))
        write_members(j, env, outer, "python");
    px_json_end(j);
}

int px_layout_state_file_write(int dir, bool workspace, const struct px_made_env *env, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(STATE_MAX);
    struct px_json j = {.out = &text, .pretty = true};
    px_json_object(&j, NULL);
    write_members(&j, env, "current_env", NULL);
    write_members(&j, env, "runtime", NULL);
    px_json_end(&j);
    if (!text.data || text.data[text.len ? text.len - 1 : 0] != '\n')
        px_buf_putc(&text, '\n');
    px_auto_fd int place = px_layout_state_file_place(dir, e);
    if (place < 0)
        return -1;
    int r = text.err < 0 ? text.err : px_layout_replace_file(place, file_name(workspace), text.data, text.len);
    if (r >= 0 && env->env_path)
        r = point(place, env->env_path);
    return r < 0 ? px_fail(e, PX_E_IO, r, "cannot write the project's " PLACE "/%s", file_name(workspace)) : 0;
}
