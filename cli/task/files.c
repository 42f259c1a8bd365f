/* px task show, export, checkout: the files of a workspace, also of a branch, which has no directory. */
#include "cli/task/task.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct names {
    json_t *list;               /* of every entry, as it is printed */
};

static int collect(void *user, const struct px_task_entry *entry)
{
    struct names *names = user;
    char mode[8];
    json_t *path = json_string(entry->path);    /* NULL if it is no UTF-8 */
    (void)snprintf(mode, sizeof mode, "%04o", entry->mode & 07777);
    json_t *one = json_pack("{s:o, s:s, s:I, s:s}", "path", path ? path : json_null(), "type", entry->type, "size",
                            (json_int_t)entry->size, "mode", mode);
    return json_array_append_new(names->list, one) < 0 ? -ENOMEM : 0;
}

static int by_path(const void *a, const void *b)
{
    const char *x = json_string_value(json_object_get(*(json_t *const *)a, "path"));
    const char *y = json_string_value(json_object_get(*(json_t *const *)b, "path"));
    return strcmp(x ? x : "", y ? y : "");
}

static json_t *sorted(json_t *list)
{
    size_t count = json_array_size(list);
    json_t **items = calloc(count + 1, sizeof *items), *out = json_array();
    for (size_t i = 0; items && i < count; i++)
        items[i] = json_array_get(list, i);
    if (items)
        qsort(items, count, sizeof *items, by_path);
    for (size_t i = 0; items && i < count; i++)
        (void)json_array_append(out, items[i]);
    free(items);
    return out;
}

static int print_names(struct call *c, json_t *list)
{
    json_t *all = sorted(list), *one;
    size_t i;
    if (c->cli->json)
        return answer(c, json_pack("{s:i, s:s, s:o}", "schema", 1, "task", c->w.names[0], "files", all));
    json_array_foreach(all, i, one)
    {
        const char *path = json_string_value(json_object_get(one, "path"));
        (void)print("%s\n", path ? path : "(a name that is no UTF-8)");
    }
    json_decref(all);
    return flush();
}

static int print_file(struct call *c, const char *path, const struct px_bytes *data)
{
    if (!c->cli->json)
        return fwrite(data->data, 1, data->len, stdout) != data->len || flush() ? 1 : 0;
    json_t *text = json_stringn(data->data, data->len);         /* NULL if it is no UTF-8 */
    return answer(c, json_pack("{s:i, s:s, s:s, s:I, s:o}", "schema", 1, "task", c->w.names[0], "path", path, "size",
                               (json_int_t)data->len, "text", text ? text : json_null()));
}

static int show_names(struct call *c, const char *path)
{
    struct names names = {.list = json_array()};
    int status = px_task_list(c->tasks, c->w.names[0], path, collect, &names, &c->e) < 0 ? say_error(c->cli, &c->e, 1)
                                                                                      : print_names(c, names.list);
    json_decref(names.list);
    return status;
}

/* A file's bytes, or the names below a directory; of a link its name. */
int verb_show(struct call *c)
{
    const char *path = c->w.names_count > 1 ? c->w.names[1] : NULL;
    struct px_bytes data = {0};
    if (!path || strspn(path, "./") == strlen(path) || path[strlen(path) - 1] == '/')
        return show_names(c, path);
    if (px_task_read(c->tasks, c->w.names[0], path, &data, &c->e) == 0) {
        int status = print_file(c, path, &data);
        free((char *)(uintptr_t)data.data);
        return status;
    }
    if (c->e.sys != EISDIR && c->e.sys != ELOOP)
        return say_error(c->cli, &c->e, 1);
    c->e = (struct px_err){0};
    return show_names(c, path);
}

int verb_export(struct call *c)
{
    if (px_task_export(c->tasks, c->w.names[0], c->w.names[1], &c->e) < 0)
        return say_error(c->cli, &c->e, 1);
    if (!c->cli->json)
        return 0;
    return answer(c, json_pack("{s:i, s:s, s:s}", "schema", 1, "task", c->w.names[0], "directory", c->w.names[1]));
}

int verb_checkout(struct call *c)
{
    char *path = NULL;
    int status = 0;
    if (px_task_checkout(c->tasks, c->w.names[0], &path, &c->e) < 0)
        return say_error(c->cli, &c->e, 1);
    if (c->cli->json)
        status = answer(c, json_pack("{s:i, s:s, s:s}", "schema", 1, "task", c->w.names[0], "workspace", path));
    else
        status = print("%s\n", path) < 0 || flush();
    free(path);
    return status;
}
