/* Box: one running command, or a box that stays and runs several.
 *
 * (1) A box and its commands share one lock, which every call holds while it is in libpx: objects of libpx are used
 *     by one thread at a time. No call waits for this lock while it holds the GIL.
 * (2) A command keeps a reference to its box, because libpx requires commands to be freed first.
 * (3) After a fork the child has copies of the objects but is not the parent of their processes: there a box can be
 *     neither used nor ended. */
#include "ext.h"

#include <stdlib.h>
#include <unistd.h>

struct py_box {
    PyObject_HEAD
    struct px_box *box;         /* NULL: closed */
    struct py_box *home;        /* of a command */
    PyThread_type_lock lock;    /* of the family; NULL for a command, which uses its home's */
    bool stays;
    bool ended;                 /* step() has reported that the result is final */
    int commands;               /* of a box that stays: its open commands */
    pid_t owner;
};

static struct py_box *new_box(struct py_state *state, struct py_box *home)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(state->box_type, Py_tp_alloc);
    struct py_box *self = (struct py_box *)alloc(state->box_type, 0);
    if (!self)
        return NULL;
    self->owner = getpid();
    self->home = home;
    Py_XINCREF((PyObject *)home);
    self->lock = home ? NULL : PyThread_allocate_lock();
    if (!home && !self->lock) {
        Py_DECREF((PyObject *)self);
        PyErr_NoMemory();
        return NULL;
    }
    return self;
}

/* ---- one thread at a time ---- */

static PyThread_type_lock lock_of(const struct py_box *self)
{
    return self->home ? self->home->lock : self->lock;
}

static void take(const struct py_box *self)
{
    if (PyThread_acquire_lock(lock_of(self), NOWAIT_LOCK))
        return;
    Py_BEGIN_ALLOW_THREADS
    (void)PyThread_acquire_lock(lock_of(self), WAIT_LOCK);
    Py_END_ALLOW_THREADS
}

/* 0 with the lock, or -1 with an exception. */
static int enter(struct py_box *self)
{
    const struct py_state *state = py_state_of((PyObject *)self);
    if (self->owner != getpid()) {
        (void)py_error_raise_words(state, "the box belongs to another process", "This process was forked from the one that started it.",
                                   "Start a box of its own here.");
        return -1;
    }
    take(self);
    if (self->box)
        return 0;
    PyThread_release_lock(lock_of(self));
    (void)py_error_raise_words(state, "the box is closed", "It was closed before.", "Start another one.");
    return -1;
}

static PyObject *leave(struct py_box *self, int r, const struct px_err *e)
{
    PyThread_release_lock(lock_of(self));
    if (r < 0)
        return py_error_raise(py_state_of((PyObject *)self), e);
    Py_RETURN_NONE;
}

/* ---- starting ---- */

struct request {
    struct py_policy *policy;
    PyObject *argv;
    struct px_io io;
};

static int parse(PyObject *args, PyObject *words, PyTypeObject *policy_type, struct request *out)
{
    static char *names[] = {"policy", "argv", "stdin", "stdout", "stderr", "rows", "cols", NULL};
    int in = -1, to = -1, err = -1;
    unsigned short rows = 0, cols = 0;
    if (!PyArg_ParseTupleAndKeywords(args, words, "O!O|iiiHH", names, policy_type, &out->policy, &out->argv, &in, &to, &err, &rows,
                                     &cols))
        return -1;
    out->io = (struct px_io){.use_in = in >= 0, .use_out = to >= 0, .use_err = err >= 0, .in = in, .out = to, .err = err,
                             .rows = rows, .cols = cols};
    return 0;
}

/* Starts a command in a box of its own, or (home) in one that stays. */
static PyObject *run(struct py_state *state, struct py_box *home, const struct request *request)
{
    struct py_words argv;
    struct px_err e = {0};
    if (py_words_init(&argv, request->argv) < 0)
        return NULL;
    struct py_box *self = NULL;
    int r = -1;
    if (!argv.items || !argv.items[0])
        PyErr_SetString(PyExc_ValueError, "there is no command");
    else
        self = new_box(state, home);
    if (self && (!home || enter(home) == 0)) {
        request->policy->users++;
        Py_BEGIN_ALLOW_THREADS
        r = home ? px_box_exec(home->box, request->policy->policy, argv.items, &request->io, &self->box, &e)
                 : px_box_start(request->policy->policy, argv.items, &request->io, &self->box, &e);
        Py_END_ALLOW_THREADS
        request->policy->users--;
        if (home) {
            home->commands += r == 0;
            PyThread_release_lock(home->lock);
        }
        if (r < 0)
            (void)py_error_raise(state, &e);
    }
    py_words_done(&argv);
    if (r == 0)
        return (PyObject *)self;
    Py_XDECREF((PyObject *)self);
    return NULL;
}

PyObject *py_box_start(PyObject *module, PyObject *args, PyObject *words)
{
    struct py_state *state = PyModule_GetState(module);
    struct request request = {0};
    return parse(args, words, state->policy_type, &request) < 0 ? NULL : run(state, NULL, &request);
}

static PyObject *box_exec(PyObject *object, PyObject *args, PyObject *words)
{
    struct py_state *state = py_state_of(object);
    struct py_box *self = (struct py_box *)object;
    struct request request = {0};
    if (!self->stays) {
        PyErr_SetString(PyExc_ValueError, "this is not a box that stays");
        return NULL;
    }
    return parse(args, words, state->policy_type, &request) < 0 ? NULL : run(state, self, &request);
}

PyObject *py_box_stay(PyObject *module, PyObject *args)
{
    struct py_state *state = PyModule_GetState(module);
    struct py_policy *policy;
    struct px_err e = {0};
    int r;
    if (!PyArg_ParseTuple(args, "O!:stay", state->policy_type, &policy))
        return NULL;
    struct py_box *self = new_box(state, NULL);
    if (!self)
        return NULL;
    policy->users++;
    Py_BEGIN_ALLOW_THREADS
    r = px_box_stay(policy->policy, &self->box, &e);
    Py_END_ALLOW_THREADS
    policy->users--;
    self->stays = r == 0;
    if (r == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return py_error_raise(state, &e);
}

PyObject *py_box_take(struct py_state *state, struct px_box *box)
{
    struct py_box *self = new_box(state, NULL);
    if (self)
        self->box = box;
    else
        px_box_free(box);
    return (PyObject *)self;
}

/* ---- while it runs ---- */

static PyObject *box_fileno(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    (void)none;
    if (enter(self) < 0)
        return NULL;
    int fd = px_box_fd(self->box);
    PyThread_release_lock(lock_of(self));
    return PyLong_FromLong(fd);
}

static PyObject *box_pid(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    (void)none;
    if (enter(self) < 0)
        return NULL;
    int pid = px_box_pid(self->box);
    PyThread_release_lock(lock_of(self));
    return PyLong_FromLong(pid);
}

static PyObject *box_step(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    struct px_err e = {0};
    int r;
    (void)none;
    if (enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = px_box_step(self->box, &e);
    Py_END_ALLOW_THREADS
    self->ended = self->ended || r == 0;
    PyThread_release_lock(lock_of(self));
    return r < 0 ? py_error_raise(py_state_of(object), &e) : PyBool_FromLong(r);
}

static PyObject *box_signal(PyObject *object, PyObject *args)
{
    struct py_box *self = (struct py_box *)object;
    struct px_err e = {0};
    int number;
    if (!PyArg_ParseTuple(args, "i:signal", &number) || enter(self) < 0)
        return NULL;
    return leave(self, px_box_signal(self->box, number, &e), &e);
}

static PyObject *box_kill(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    struct px_err e = {0};
    (void)none;
    if (enter(self) < 0)
        return NULL;
    return leave(self, px_box_kill(self->box, &e), &e);
}

static PyObject *box_resize(PyObject *object, PyObject *args)
{
    struct py_box *self = (struct py_box *)object;
    struct px_err e = {0};
    unsigned short rows, cols;
    if (!PyArg_ParseTuple(args, "HH:resize", &rows, &cols) || enter(self) < 0)
        return NULL;
    return leave(self, px_box_resize(self->box, rows, cols, &e), &e);
}

/* libpx asks px-net and waits for its answer. */
static PyObject *box_network(PyObject *object, PyObject *args)
{
    struct py_box *self = (struct py_box *)object;
    struct px_err e = {0};
    const char *field, *value;
    int r;
    if (!PyArg_ParseTuple(args, "sz:network", &field, &value) || enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = px_box_network(self->box, field, value, &e);
    Py_END_ALLOW_THREADS
    return leave(self, r, &e);
}

static PyObject *box_ports(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    PyObject *list;
    const struct px_port *p;
    (void)none;
    if (enter(self) < 0)
        return NULL;
    list = PyList_New(0);
    for (size_t i = 0; list && (p = px_box_port(self->box, i)); i++) {
        PyObject *row = Py_BuildValue("siis", p->address, (int)p->host, (int)p->box, p->udp ? "udp" : "tcp");
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    PyThread_release_lock(lock_of(self));
    return list;
}

/* ---- the end ---- */

/* The result of a running box has status OK, because nothing has failed so far. */
static int enter_ended(struct py_box *self)
{
    if (enter(self) < 0)
        return -1;
    if (self->ended)
        return 0;
    PyThread_release_lock(lock_of(self));
    (void)py_error_raise_words(py_state_of((PyObject *)self), "the box still runs",
                               "It has no result before step() has said False.", "Call step() until it says False.");
    return -1;
}

static PyObject *box_result(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    (void)none;
    if (enter_ended(self) < 0)
        return NULL;
    const struct px_result *r = px_box_result(self->box);
    PyObject *found = Py_BuildValue("ssiiy#y#", px_status_name(r->status), r->reason ? r->reason : "", r->exit_code, r->signal,
                                    r->out.data ? r->out.data : "", (Py_ssize_t)r->out.len, r->err.data ? r->err.data : "",
                                    (Py_ssize_t)r->err.len);
    PyThread_release_lock(lock_of(self));
    return found;
}

static PyObject *box_json(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    char *text = NULL;
    struct px_err e = {0};
    (void)none;
    if (enter_ended(self) < 0)
        return NULL;
    int r = px_box_json(self->box, false, &text, &e);
    PyThread_release_lock(lock_of(self));
    return r < 0 ? py_error_raise(py_state_of(object), &e) : py_error_take(text);
}

static PyObject *box_output(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    char *out = NULL, *err = NULL;
    size_t out_len = 0, err_len = 0;
    struct px_err e = {0};
    (void)none;
    if (enter_ended(self) < 0)
        return NULL;
    int r = px_box_output(self->box, 1, &out, &out_len, &e);
    r = r < 0 ? r : px_box_output(self->box, 2, &err, &err_len, &e);
    PyThread_release_lock(lock_of(self));
    PyObject *found = r < 0 ? py_error_raise(py_state_of(object), &e)
                            : Py_BuildValue("y#y#", out, (Py_ssize_t)out_len, err, (Py_ssize_t)err_len);
    free(out);
    free(err);
    return found;
}

struct px_box *py_box_enter_ended(PyObject *object)
{
    struct py_box *self = (struct py_box *)object;
    return enter_ended(self) < 0 ? NULL : self->box;
}

void py_box_leave(PyObject *object)
{
    PyThread_release_lock(lock_of((struct py_box *)object));
}

static void give_back(struct py_box *self)
{
    struct px_box *box = self->box;
    self->box = NULL;
    if (box && self->home)
        self->home->commands--;
    Py_BEGIN_ALLOW_THREADS
    px_box_free(box);
    Py_END_ALLOW_THREADS
}

static PyObject *box_close(PyObject *object, PyObject *none)
{
    struct py_box *self = (struct py_box *)object;
    (void)none;
    if (self->owner != getpid() || !self->box)
        Py_RETURN_NONE;
    take(self);
    bool busy = self->commands > 0;
    if (!busy)
        give_back(self);
    PyThread_release_lock(lock_of(self));
    if (busy)
        return py_error_raise_words(py_state_of(object), "the box has commands", "They need it as long as they are there.",
                                    "Close them first.");
    Py_RETURN_NONE;
}

static void box_dealloc(PyObject *object)
{
    struct py_box *self = (struct py_box *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->box && self->owner == getpid()) {
        take(self);
        give_back(self);
        PyThread_release_lock(lock_of(self));
    }
    if (self->lock)
        PyThread_free_lock(self->lock);
    Py_XDECREF((PyObject *)self->home);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"exec", (PyCFunction)(void (*)(void))box_exec, METH_VARARGS | METH_KEYWORDS,
     "exec(policy, argv, stdin=-1, stdout=-1, stderr=-1, rows=0, cols=0): one more command in a box that stays."},
    {"fileno", box_fileno, METH_NOARGS, "Readable whenever step() has work."},
    {"pid", box_pid, METH_NOARGS, "The command's process as the host counts; 0 if it is gone."},
    {"step", box_step, METH_NOARGS, "Does what there is to do without waiting; False once the result is final."},
    {"signal", box_signal, METH_VARARGS, "signal(number): to the command's process group."},
    {"kill", box_kill, METH_NOARGS, "Ends it now."},
    {"resize", box_resize, METH_VARARGS, "resize(rows, cols) of its terminal."},
    {"network", box_network, METH_VARARGS,
     "network(field, value): one more rule (allow-net, deny-net) or port (publish) of its network; value None forgets all rules."},
    {"ports", box_ports, METH_NOARGS, "[(address, port of the host, port of the box, 'tcp' or 'udp')] that were published."},
    {"result", box_result, METH_NOARGS, "(status, reason, exit code, signal, stdout, stderr) once step() said False."},
    {"output", box_output, METH_NOARGS, "(stdout, stderr) to be read: a line stands where bytes were left out."},
    {"json", box_json, METH_NOARGS, "The whole result as a JSON text."},
    {"close", box_close, METH_NOARGS, "Ends it if it still runs, and gives everything back. A home after its commands."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, box_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, (void *)"One running command, or a box that stays and runs several."},
    {0, NULL},
};

PyType_Spec py_box_spec = {
    .name = "px._px.Box", .basicsize = sizeof(struct py_box),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, .slots = slots};
