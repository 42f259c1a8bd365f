/* Worker: the boundaries of an agent. It is immutable, so several threads may use it at once. */
#include "ext.h"

#include <stdlib.h>

#include <px/worker.h>

struct py_worker {
    PyObject_HEAD
    struct px_worker *worker;
};

static const struct px_worker *worker_of(PyObject *object)
{
    return ((struct py_worker *)object)->worker;
}

static PyObject *worker_new(PyTypeObject *type, PyObject *args, PyObject *words)
{
    PyObject *path = NULL, *base, *place = NULL;
    struct px_worker *worker = NULL;
    struct px_err e = {0};
    (void)words;
    if (!PyArg_ParseTuple(args, "O&O:Worker", PyUnicode_FSConverter, &path, &base))
        return NULL;
    if (base != Py_None && !PyUnicode_FSConverter(base, (void *)&place)) {
        Py_DECREF(path);
        return NULL;
    }
    int r = px_worker_load(PyBytes_AsString(path), place ? PyBytes_AsString(place) : NULL, &worker, &e);
    Py_DECREF(path);
    Py_XDECREF(place);
    if (r < 0)
        return py_error_raise(PyType_GetModuleState(type), &e);
    struct py_worker *self = (struct py_worker *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) {
        px_worker_free(worker);
        return NULL;
    }
    self->worker = worker;
    return (PyObject *)self;
}

static void worker_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    px_worker_free(((struct py_worker *)object)->worker);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* ---- questions ---- */

static PyObject *worker_describe(PyObject *object, PyObject *none)
{
    char *text = NULL, *json = NULL;
    struct px_err e = {0};
    (void)none;
    if (px_worker_describe(worker_of(object), &text, &json, &e) < 0)
        return py_error_raise(py_state_of(object), &e);
    return Py_BuildValue("NN", py_error_take(text), py_error_take(json));
}

static PyObject *worker_files(PyObject *object, PyObject *none)
{
    (void)none;
    return py_files_of(py_state_of(object), px_worker_files(worker_of(object)));
}

static PyObject *words_of(char **argv)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && argv[i]; i++) {
        PyObject *word = PyUnicode_DecodeFSDefault(argv[i]);
        if (!word || PyList_Append(list, word) < 0)
            Py_CLEAR(list);
        Py_XDECREF(word);
    }
    return list;
}

static PyObject *worker_judge(PyObject *object, PyObject *args)
{
    PyObject *command = NULL;
    char **argv = NULL;
    struct px_err e = {0};
    if (!PyArg_ParseTuple(args, "O&:judge", PyUnicode_FSConverter, &command))
        return NULL;
    enum px_approval verdict = px_worker_judge(worker_of(object), PyBytes_AsString(command), &argv, &e);
    Py_DECREF(command);
    if (verdict == PX_BLOCKED)
        return py_error_raise(py_state_of(object), &e);
    PyObject *found = Py_BuildValue("sN", px_approval_name(verdict), words_of(argv));
    px_words_free(argv);
    return found;
}

static PyObject *worker_attach(PyObject *object, PyObject *args)
{
    PyObject *path = NULL;
    uint64_t bytes = 0;
    int fd = -1;
    struct px_err e = {0};
    if (!PyArg_ParseTuple(args, "O&:attach", PyUnicode_FSConverter, &path))
        return NULL;
    int r = px_worker_attach(worker_of(object), PyBytes_AsString(path), &fd, &bytes, &e);
    Py_DECREF(path);
    return r < 0 ? py_error_raise(py_state_of(object), &e) : Py_BuildValue("iK", fd, (unsigned long long)bytes);
}

static PyObject *worker_child(PyObject *object, PyObject *args)
{
    PyObject *name = NULL;
    char *path = NULL;
    struct px_err e = {0};
    if (!PyArg_ParseTuple(args, "O&:child", PyUnicode_FSConverter, &name))
        return NULL;
    int r = px_worker_child(worker_of(object), PyBytes_AsString(name), &path, &e);
    Py_DECREF(name);
    if (r < 0)
        return py_error_raise(py_state_of(object), &e);
    PyObject *found = PyUnicode_DecodeFSDefault(path);
    free(path);
    return found;
}

/* ---- the shell tool ---- */

static PyObject *start(PyObject *object, const char *const *argv, const struct px_worker_run *how)
{
    struct px_box *box = NULL;
    struct px_err e = {0};
    int r;
    if (!argv || !argv[0]) {
        PyErr_SetString(PyExc_ValueError, "there is no command");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    r = px_worker_start(worker_of(object), argv, how, &box, &e);
    Py_END_ALLOW_THREADS
    return r < 0 ? py_error_raise(py_state_of(object), &e) : py_box_take(py_state_of(object), box);
}

static PyObject *worker_start(PyObject *object, PyObject *args)
{
    PyObject *command, *attached, *from;
    struct py_words argv, attachments;
    struct px_worker_run how = {0};
    if (!PyArg_ParseTuple(args, "OIOO!:start", &command, &how.timeout_s, &attached, Py_TYPE(object), &from) ||
        py_words_init(&argv, command) < 0)
        return NULL;
    if (py_words_init(&attachments, attached) < 0) {
        py_words_done(&argv);
        return NULL;
    }
    how.attachments = attachments.items;
    how.from = worker_of(from);
    PyObject *box = start(object, argv.items, &how);
    py_words_done(&argv);
    py_words_done(&attachments);
    return box;
}

static PyObject *worker_result(PyObject *object, PyObject *args)
{
    struct py_state *state = py_state_of(object);
    PyObject *box;
    unsigned timeout;
    char *json = NULL;
    struct px_err e = {0};
    if (!PyArg_ParseTuple(args, "O!I:result", state->box_type, &box, &timeout))
        return NULL;
    const struct px_box *ended = py_box_enter_ended(box);
    if (!ended)
        return NULL;
    int r = px_worker_result(worker_of(object), ended, timeout, &json, &e);
    py_box_leave(box);
    return r < 0 ? py_error_raise(state, &e) : py_error_take(json);
}

static PyMethodDef methods[] = {
    {"describe", worker_describe, METH_NOARGS, "Its boundaries: (text, JSON)."},
    {"files", worker_files, METH_NOARGS, "Its file sandbox."},
    {"judge", worker_judge, METH_VARARGS, "judge(command): (approval, words); an error if it is blocked."},
    {"attach", worker_attach, METH_VARARGS, "attach(path): (descriptor, bytes) of a file that may be handed on."},
    {"child", worker_child, METH_VARARGS, "child(name): the file of a worker that this one may call."},
    {"start", worker_start, METH_VARARGS, "start(argv, timeout, attachments, from): the command in a box."},
    {"result", worker_result, METH_VARARGS, "result(box, timeout): what a model is told of a command that has ended, as JSON."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, worker_new},
    {Py_tp_dealloc, worker_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, (void *)"Worker(file, base): the boundaries of an agent, from its file."},
    {0, NULL},
};

PyType_Spec py_worker_spec = {
    .name = "px._px.Worker", .basicsize = sizeof(struct py_worker), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, .slots = slots};
