/* Files: a file sandbox. It is immutable, so several threads may use it at once. */
#include "ext.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <px/files.h>

struct py_files {
    PyObject_HEAD
    struct px_files *files;
};

static PyObject *wrap(struct py_state *state, struct px_files *files)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(state->files_type, Py_tp_alloc);
    struct py_files *self = (struct py_files *)alloc(state->files_type, 0);
    if (!self) {
        px_files_free(files);
        return NULL;
    }
    self->files = files;
    return (PyObject *)self;
}

static void files_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    px_files_free(((struct py_files *)object)->files);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* ---- making one ---- */

struct roots {
    struct px_files_root items[PX_FILES_ROOTS_MAX];
    PyObject *dirs[PX_FILES_ROOTS_MAX];
    struct py_words suffixes[PX_FILES_ROOTS_MAX];
    size_t count;
};

/* (name, directory, writable, suffixes or None, the largest file or 0, whether git directories can be written); missing
 * directories are made if they are writable. */
static int add_root(struct roots *roots, PyObject *row)
{
    const char *name;
    PyObject *suffixes;
    int writable, git_writable;
    unsigned long long max;
    size_t i = roots->count;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a root is a tuple");
        return -1;
    }
    if (i == PX_FILES_ROOTS_MAX) {
        PyErr_Format(PyExc_ValueError, "more than %d roots", PX_FILES_ROOTS_MAX);
        return -1;
    }
    if (!PyArg_ParseTuple(row, "sO&pOKp", &name, PyUnicode_FSConverter, &roots->dirs[i], &writable, &suffixes, &max,
                          &git_writable))
        return -1;
    roots->count++;
    if (py_words_init(&roots->suffixes[i], suffixes) < 0)
        return -1;
    roots->items[i] = (struct px_files_root){.name = name, .dir = PyBytes_AsString(roots->dirs[i]), .writable = writable, .create = writable,
                                             .git_writable = git_writable, .suffixes = roots->suffixes[i].items,
                                             .max_file_bytes = max};
    return 0;
}

static void free_roots(struct roots *roots)
{
    for (size_t i = 0; i < roots->count; i++) {
        Py_XDECREF(roots->dirs[i]);
        py_words_done(&roots->suffixes[i]);
    }
    PyMem_Free(roots);
}

static PyObject *make(struct py_state *state, PyObject *rows, struct roots *roots)
{
    struct px_files *files = NULL;
    struct px_err e = {0};
    Py_ssize_t count = PyTuple_Size(rows);
    for (Py_ssize_t i = 0; i < count; i++)
        if (add_root(roots, PyTuple_GetItem(rows, i)) < 0)
            return NULL;
    if (px_files_new(roots->items, roots->count, &files, &e) < 0)
        return py_error_raise(state, &e);
    return wrap(state, files);
}

/* Uses its own tuple: reading a row calls methods of its items, which can change the caller's list. */
static PyObject *files_new(PyTypeObject *type, PyObject *args, PyObject *words)
{
    PyObject *list;
    (void)words;
    if (!PyArg_ParseTuple(args, "O!:Files", &PyList_Type, &list))
        return NULL;
    PyObject *rows = PySequence_Tuple(list);
    if (!rows)
        return NULL;
    struct roots *roots = PyMem_Calloc(1, sizeof *roots);
    PyObject *made = roots ? make(PyType_GetModuleState(type), rows, roots) : PyErr_NoMemory();
    if (roots)
        free_roots(roots);
    Py_DECREF(rows);
    return made;
}

static PyObject *files_derive(PyObject *object, PyObject *args)
{
    struct py_state *state = py_state_of(object);
    PyObject *read, *write;
    int inherit, read_only;
    struct py_words reads, writes;
    struct px_files *files = NULL;
    struct px_err e = {0};
    if (!PyArg_ParseTuple(args, "OOpp:derive", &read, &write, &inherit, &read_only) || py_words_init(&reads, read) < 0)
        return NULL;
    if (py_words_init(&writes, write) < 0) {
        py_words_done(&reads);
        return NULL;
    }
    const struct px_files_narrow narrow = {.read = reads.items, .write = writes.items, .inherit = inherit, .read_only = read_only};
    int r = px_files_derive(((struct py_files *)object)->files, &narrow, &files, &e);
    py_words_done(&reads);
    py_words_done(&writes);
    return r < 0 ? py_error_raise(state, &e) : wrap(state, files);
}

PyObject *py_files_of(struct py_state *state, const struct px_files *files)
{
    const struct px_files_narrow same = {.inherit = true};
    struct px_files *own = NULL;
    struct px_err e = {0};
    return px_files_derive(files, &same, &own, &e) < 0 ? py_error_raise(state, &e) : wrap(state, own);
}

/* ---- using it ---- */

static PyObject *files_call(PyObject *object, PyObject *args)
{
    const char *op, *json;
    Py_ssize_t len;
    struct px_files_answer answer = {0};
    struct px_err e = {0};
    int r;
    if (!PyArg_ParseTuple(args, "ss#:call", &op, &json, &len))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = px_files_call_json(((struct py_files *)object)->files, op, json, (size_t)len, &answer, &e);
    Py_END_ALLOW_THREADS
    if (r < 0)
        return py_error_raise(py_state_of(object), &e);
    PyObject *found = py_error_text(answer.json);
    px_files_answer_done(&answer);
    return found;
}

static PyObject *files_can(PyObject *object, PyObject *args, bool (*can)(const struct px_files *, const char *))
{
    PyObject *path = NULL;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    bool yes = can(((struct py_files *)object)->files, PyBytes_AsString(path));
    Py_DECREF(path);
    return PyBool_FromLong(yes);
}

static PyObject *files_can_read(PyObject *object, PyObject *args)
{
    return files_can(object, args, px_files_can_read);
}

static PyObject *files_can_write(PyObject *object, PyObject *args)
{
    return files_can(object, args, px_files_can_write);
}

static PyObject *files_open(PyObject *object, PyObject *args)
{
    PyObject *path = NULL;
    struct px_err e = {0};
    int fd = -1, r;
    if (!PyArg_ParseTuple(args, "O&:open", PyUnicode_FSConverter, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = px_files_open(((struct py_files *)object)->files, PyBytes_AsString(path), &fd, &e);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return r < 0 ? py_error_raise(py_state_of(object), &e) : PyLong_FromLong(fd);
}

static PyObject *files_roots(PyObject *object, PyObject *none)
{
    PyObject *list = PyList_New(0);
    struct px_files_root root;
    (void)none;
    for (size_t i = 0; list && px_files_root_at(((struct py_files *)object)->files, i, &root) == 0; i++) {
        PyObject *row = Py_BuildValue("sN", root.name, PyBool_FromLong(root.writable));
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* Resolved through the open descriptors, so a renamed directory has its current path. */
static PyObject *files_places(PyObject *object, PyObject *none)
{
    PyObject *places = PyDict_New();
    struct px_files_root root;
    (void)none;
    for (size_t i = 0; places && px_files_root_at(((struct py_files *)object)->files, i, &root) == 0; i++) {
        char link[64], path[PATH_MAX];
        PyOS_snprintf(link, sizeof link, "/proc/self/fd/%d", root.fd);
        ssize_t n = readlink(link, path, sizeof path);
        PyObject *place = n < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyUnicode_DecodeFSDefaultAndSize(path, n);
        if (!place || PyDict_SetItemString(places, root.name, place) < 0)
            Py_CLEAR(places);
        Py_XDECREF(place);
    }
    return places;
}

static PyMethodDef methods[] = {
    {"call", files_call, METH_VARARGS, "call(operation, json): the answer as a JSON text."},
    {"can_read", files_can_read, METH_VARARGS, "can_read(path): whether the rules allow it."},
    {"can_write", files_can_write, METH_VARARGS, "can_write(path): whether the rules allow it."},
    {"open", files_open, METH_VARARGS, "open(path): a descriptor of the file, for reading."},
    {"derive", files_derive, METH_VARARGS, "derive(read, write, inherit, read_only): one that can do less."},
    {"roots", files_roots, METH_NOARGS, "[(name, writable)]"},
    {"places", files_places, METH_NOARGS, "{name: where its directory is on the host}"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, files_new},
    {Py_tp_dealloc, files_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, (void *)"Files([(name, directory, writable, suffixes, max_file_bytes, git_writable)]): directories and their rules."},
    {0, NULL},
};

PyType_Spec py_files_spec = {
    .name = "px._px.Files", .basicsize = sizeof(struct py_files), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, .slots = slots};
