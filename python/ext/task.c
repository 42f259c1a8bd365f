/* Tasks: workspaces and the actions in them. TaskRun: one action, which an event loop steps as it steps a box.
 *
 * (1) Tasks are immutable, so several threads may use them at once. A run is used by one thread at a time: a second
 *     one gets an error instead of waiting for a long action.
 * (2) A run keeps a reference to its Tasks.
 * (3) After a fork the child can neither use nor end a run of its parent. */
#include "ext.h"

#include <stdlib.h>
#include <unistd.h>

#include <px/task.h>

struct py_tasks {
    PyObject_HEAD
    struct px_tasks *tasks;
};

struct py_task_run {
    PyObject_HEAD
    struct px_task_run *run;
    PyObject *tasks;
    bool busy;
    bool ended;                 /* step() has reported that the result is final */
    pid_t owner;
};

static const struct px_tasks *tasks_of(PyObject *object)
{
    return ((struct py_tasks *)object)->tasks;
}

/* ---- configuration ---- */

static PyObject *tasks_new(PyTypeObject *type, PyObject *args, PyObject *words)
{
    PyObject *file, *path = NULL;
    struct px_tasks *tasks = NULL;
    struct px_err e = {0};
    int r;
    (void)words;
    if (!PyArg_ParseTuple(args, "O:Tasks", &file) || (file != Py_None && !PyUnicode_FSConverter(file, (void *)&path)))
        return NULL;
    const char *name = path ? PyBytes_AsString(path) : NULL;
    Py_BEGIN_ALLOW_THREADS
    r = px_tasks_new(name, &tasks, &e);
    Py_END_ALLOW_THREADS
    Py_XDECREF(path);
    if (r < 0)
        return py_error_raise(PyType_GetModuleState(type), &e);
    struct py_tasks *self = (struct py_tasks *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) {
        px_tasks_free(tasks);
        return NULL;
    }
    self->tasks = tasks;
    return (PyObject *)self;
}

static void tasks_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    px_tasks_free(((struct py_tasks *)object)->tasks);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *list_of(const char *const *texts)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && texts[i]; i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(texts[i]);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *tasks_config(PyObject *object, PyObject *none)
{
    const struct px_tasks_config *c = px_tasks_config(tasks_of(object));
    (void)none;
    return Py_BuildValue("NNKKKNKNNNNzz", PyUnicode_DecodeFSDefault(c->work_root), PyUnicode_DecodeFSDefault(c->logs_dir),
                         (unsigned long long)c->timeout_msec, (unsigned long long)c->cpu_time_msec, (unsigned long long)c->memory_bytes,
                         list_of(c->allowed), (unsigned long long)c->log_bytes_max, PyBool_FromLong(c->overlay),
                         list_of(c->path), list_of(c->binds), list_of(c->env), c->base, c->project);
}

/* ---- answers ---- */

static PyObject *nothing(PyObject *object, int r, const struct px_err *e)
{
    if (r < 0)
        return py_error_raise(py_state_of(object), e);
    Py_RETURN_NONE;
}

/* Frees the path. */
static PyObject *taken_path(PyObject *object, int r, char *path, const struct px_err *e)
{
    PyObject *found = r < 0 ? py_error_raise(py_state_of(object), e) : PyUnicode_DecodeFSDefault(path);
    free(path);
    return found;
}

/* ---- workspaces ---- */

struct given {
    struct px_task_file *files;
    size_t count;
    PyObject *keep;             /* paths as bytes; the contents are those of the caller's list */
};

static int take_file(struct given *g, PyObject *row)
{
    PyObject *path = NULL;
    const char *data;
    Py_ssize_t len;
    if (!PyArg_ParseTuple(row, "O&y#", PyUnicode_FSConverter, &path, &data, &len))
        return -1;
    int r = PyList_Append(g->keep, path);
    g->files[g->count++] = (struct px_task_file){.path = PyBytes_AsString(path), .data = data, .len = (size_t)len};
    Py_DECREF(path);
    return r;
}

static int take_files(struct given *g, PyObject *list)
{
    Py_ssize_t count = PyTuple_Size(list);
    g->files = PyMem_Calloc((size_t)count + 1, sizeof *g->files);
    g->keep = PyList_New(0);
    if (!g->files || !g->keep) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (take_file(g, PyTuple_GetItem(list, i)) < 0)
            return -1;
    return 0;
}

static PyObject *prepare(PyObject *object, const char *id, const struct given *g)
{
    char *path = NULL;
    struct px_err e = {0};
    int r;
    Py_BEGIN_ALLOW_THREADS
    r = px_task_prepare(tasks_of(object), id, g->files, g->count, NULL, &path, &e);
    Py_END_ALLOW_THREADS
    return taken_path(object, r, path, &e);
}

static PyObject *tasks_prepare(PyObject *object, PyObject *args)
{
    const char *id;
    PyObject *list;
    struct given g = {0};
    if (!PyArg_ParseTuple(args, "sO!:prepare", &id, &PyTuple_Type, &list))
        return NULL;
    PyObject *found = take_files(&g, list) < 0 ? NULL : prepare(object, id, &g);
    Py_XDECREF(g.keep);
    PyMem_Free(g.files);
    return found;
}

static PyObject *tasks_cleanup(PyObject *object, PyObject *args)
{
    const char *id;
    struct px_err e = {0};
    int r;
    if (!PyArg_ParseTuple(args, "s:cleanup", &id))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = px_task_cleanup(tasks_of(object), id, &e);
    Py_END_ALLOW_THREADS
    return nothing(object, r, &e);
}

/* ---- branches and files ---- */

static PyObject *tasks_fork(PyObject *object, PyObject *args)
{
    const char *from, *to;
    struct px_err e = {0};
    int r;
    if (!PyArg_ParseTuple(args, "ss:fork", &from, &to))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = px_task_fork(tasks_of(object), from, to, &e);
    Py_END_ALLOW_THREADS
    return nothing(object, r, &e);
}

/* (((path, kind, is a link), ...), diff, truncated) */
static PyObject *told(const struct px_task_changes *c)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < c->count; i++) {
        PyObject *one = Py_BuildValue("NsO", PyUnicode_DecodeFSDefault(c->changes[i].path), c->changes[i].kind,
                                      c->changes[i].link ? Py_True : Py_False);
        if (!one || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list ? Py_BuildValue("Ny#O", list, c->diff.data ? c->diff.data : "", (Py_ssize_t)c->diff.len,
                                c->truncated ? Py_True : Py_False)
                : NULL;
}

static PyObject *compare(PyObject *object, PyObject *args, const char *format,
                         int (*call)(const struct px_tasks *, const char *, const char *, struct px_task_changes *, struct px_err *))
{
    const char *a, *b = NULL;
    struct px_task_changes changes = {0};
    struct px_err e = {0};
    int r;
    if (!PyArg_ParseTuple(args, format, &a, &b))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = call(tasks_of(object), a, b, &changes, &e);
    Py_END_ALLOW_THREADS
    if (r < 0)
        return py_error_raise(py_state_of(object), &e);
    PyObject *found = told(&changes);
    px_task_changes_done(&changes);
    return found;
}

static PyObject *tasks_diff(PyObject *object, PyObject *args)
{
    return compare(object, args, "sz:diff", px_task_diff);
}

static PyObject *tasks_apply_from(PyObject *object, PyObject *args)
{
    return compare(object, args, "ss:apply_from", px_task_apply_from);
}

static PyObject *tasks_export(PyObject *object, PyObject *args)
{
    const char *id;
    PyObject *path = NULL;
    struct px_err e = {0};
    int r;
    if (!PyArg_ParseTuple(args, "sO&:export", &id, PyUnicode_FSConverter, &path))
        return NULL;
    const char *dir = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS
    r = px_task_export(tasks_of(object), id, dir, &e);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return nothing(object, r, &e);
}

static PyObject *tasks_checkout(PyObject *object, PyObject *args)
{
    const char *id;
    char *path = NULL;
    struct px_err e = {0};
    int r;
    if (!PyArg_ParseTuple(args, "s:checkout", &id))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = px_task_checkout(tasks_of(object), id, &path, &e);
    Py_END_ALLOW_THREADS
    return taken_path(object, r, path, &e);
}

static PyObject *tasks_read(PyObject *object, PyObject *args)
{
    const char *id;
    PyObject *path = NULL;
    struct px_bytes data = {0};
    struct px_err e = {0};
    int r;
    if (!PyArg_ParseTuple(args, "sO&:read", &id, PyUnicode_FSConverter, &path))
        return NULL;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS
    r = px_task_read(tasks_of(object), id, name, &data, &e);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (r < 0)
        return py_error_raise(py_state_of(object), &e);
    PyObject *found = PyBytes_FromStringAndSize(data.data, (Py_ssize_t)data.len);
    free((char *)(uintptr_t)data.data);
    return found;
}

static int add_name(void *user, const struct px_task_entry *entry)
{
    PyObject *name = PyUnicode_DecodeFSDefault(entry->path);
    int r = name ? PyList_Append(user, name) : -1;
    Py_XDECREF(name);
    return r;
}

/* Creates Python objects in the callback, so it holds the GIL. */
static PyObject *tasks_list(PyObject *object, PyObject *args)
{
    const char *id;
    struct px_err e = {0};
    if (!PyArg_ParseTuple(args, "s:list", &id))
        return NULL;
    PyObject *names = PyList_New(0);
    if (!names || px_task_list(tasks_of(object), id, NULL, add_name, names, &e) == 0)
        return names;
    Py_DECREF(names);
    return PyErr_Occurred() ? NULL : py_error_raise(py_state_of(object), &e);
}

/* ---- actions ---- */

static PyObject *start(PyObject *object, const char *id, const struct px_task_action *action)
{
    struct py_state *state = py_state_of(object);
    struct px_err e = {0};
    int r;
    struct py_task_run *self = (struct py_task_run *)((allocfunc)PyType_GetSlot(state->task_run_type, Py_tp_alloc))(state->task_run_type, 0);
    if (!self)
        return NULL;
    self->owner = getpid();
    self->tasks = object;
    Py_INCREF(object);
    Py_BEGIN_ALLOW_THREADS
    r = px_task_start(tasks_of(object), id, action, &self->run, &e);
    Py_END_ALLOW_THREADS
    if (r >= 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return py_error_raise(state, &e);
}

static PyObject *tasks_start(PyObject *object, PyObject *args)
{
    const char *id;
    PyObject *command;
    int discard, on_timeout, test;
    struct py_words words;
    struct px_task_action action = {0};
    if (!PyArg_ParseTuple(args, "sOzzzppp:start", &id, &command, &action.timeout, &action.cpu_time, &action.memory, &discard, &on_timeout,
                          &test) ||
        py_words_init(&words, command) < 0)
        return NULL;
    action.command = words.items;
    action.discard = discard;
    action.discard_on_timeout = on_timeout;
    action.test = test;
    PyObject *run = start(object, id, &action);
    py_words_done(&words);
    return run;
}

/* 0, or -1 with an exception. */
static int enter(struct py_task_run *self)
{
    const char *what = self->owner != getpid() ? "the action belongs to another process"
                       : !self->run            ? "the action is closed"
                       : self->busy            ? "the action is in use by another thread"
                                               : NULL;
    if (!what)
        return 0;
    (void)py_error_raise_words(py_state_of((PyObject *)self), what, "An action is used by the thread that started it, until its end.",
                               "Start another action.");
    return -1;
}

static PyObject *run_fileno(PyObject *object, PyObject *none)
{
    struct py_task_run *self = (struct py_task_run *)object;
    (void)none;
    return enter(self) < 0 ? NULL : PyLong_FromLong(px_task_fd(self->run));
}

static PyObject *run_step(PyObject *object, PyObject *none)
{
    struct py_task_run *self = (struct py_task_run *)object;
    struct px_err e = {0};
    int r;
    (void)none;
    if (enter(self) < 0)
        return NULL;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    r = px_task_step(self->run, &e);
    Py_END_ALLOW_THREADS
    self->busy = false;
    self->ended = self->ended || r == 0;
    return r < 0 ? py_error_raise(py_state_of(object), &e) : PyBool_FromLong(r);
}

static PyObject *run_json(PyObject *object, PyObject *none)
{
    struct py_task_run *self = (struct py_task_run *)object;
    char *text = NULL;
    struct px_err e = {0};
    (void)none;
    if (enter(self) < 0)
        return NULL;
    if (!self->ended)
        return py_error_raise_words(py_state_of(object), "the action still runs",
                                    "It has no result before step() has said False.", "Call step() until it says False.");
    return px_task_json(self->run, &text, &e) < 0 ? py_error_raise(py_state_of(object), &e) : py_error_take(text);
}

static void give_back(struct py_task_run *self)
{
    struct px_task_run *run = self->run;
    self->run = NULL;
    Py_BEGIN_ALLOW_THREADS
    px_task_run_free(run);
    Py_END_ALLOW_THREADS
}

static PyObject *run_close(PyObject *object, PyObject *none)
{
    struct py_task_run *self = (struct py_task_run *)object;
    (void)none;
    if (!self->run || self->owner != getpid())
        Py_RETURN_NONE;
    if (enter(self) < 0)
        return NULL;
    give_back(self);
    Py_RETURN_NONE;
}

static void run_dealloc(PyObject *object)
{
    struct py_task_run *self = (struct py_task_run *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->run && self->owner == getpid())
        give_back(self);
    Py_XDECREF(self->tasks);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"config", tasks_config, METH_NOARGS,
     "(work_root, logs_dir, timeout_msec, cpu_time_msec, memory_bytes, allowed, log_bytes_max, overlay, path, binds, "
     "env, base, project)"},
    {"prepare", tasks_prepare, METH_VARARGS, "prepare(id, ((path, bytes), ...)): makes the workspace or adds to it; its path."},
    {"cleanup", tasks_cleanup, METH_VARARGS, "cleanup(id): removes the workspace, if there is one."},
    {"fork", tasks_fork, METH_VARARGS, "fork(id, new): a branch that begins as the workspace is."},
    {"diff", tasks_diff, METH_VARARGS, "diff(a, b): what makes b of a; b None: what a has done since it was forked."},
    {"apply_from", tasks_apply_from, METH_VARARGS, "apply_from(id, to): what a branch has done, done to another workspace."},
    {"export", tasks_export, METH_VARARGS, "export(id, directory): a copy of its files."},
    {"checkout", tasks_checkout, METH_VARARGS, "checkout(id): gives a branch a directory; its path."},
    {"read", tasks_read, METH_VARARGS, "read(id, path): the bytes of a file."},
    {"list", tasks_list, METH_VARARGS, "list(id): the paths of all files; those of directories end with '/'."},
    {"start", tasks_start, METH_VARARGS,
     "start(id, command, timeout, cpu_time, memory, discard, discard_on_timeout, test): an action; command None is one that cannot be run."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef run_methods[] = {
    {"fileno", run_fileno, METH_NOARGS, "Readable whenever step() has work; -1 if it is over already."},
    {"step", run_step, METH_NOARGS, "Does what there is to do without waiting; False once the result is final."},
    {"json", run_json, METH_NOARGS, "The whole result as a JSON text."},
    {"close", run_close, METH_NOARGS, "Ends it if it still runs, and drops what it did."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, tasks_new},
    {Py_tp_dealloc, tasks_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, (void *)"Tasks(file): workspaces as the file says, or with None as configs/sandbox.yaml does."},
    {0, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_dealloc, run_dealloc},
    {Py_tp_methods, run_methods},
    {Py_tp_doc, (void *)"One action in a workspace."},
    {0, NULL},
};

PyType_Spec py_tasks_spec = {
    .name = "px._px.Tasks", .basicsize = sizeof(struct py_tasks), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, .slots = slots};
PyType_Spec py_task_run_spec = {
    .name = "px._px.TaskRun", .basicsize = sizeof(struct py_task_run),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, .slots = run_slots};
