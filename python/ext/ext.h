/* ext.h - the C half of the Python package: the objects of px/px.h, px/files.h, px/task.h and px/worker.h, and nothing
 * else.
 *
 * Why:     Python needs descriptors for its event loops and errors as exceptions; everything else is written in Python.
 * Owns:    what its Python objects hold. Only the module's state outlives a call.
 * Mustn't: have mutable globals, hold a thread, poll, or wait while it holds the interpreter's lock. */
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdbool.h>

#include <px/px.h>

struct py_state {
    PyObject *make_error;       /* px._errors.from_engine: the exception for an error of libpx */
    PyTypeObject *policy_type, *box_type, *files_type, *tasks_type, *task_run_type, *worker_type;
};

/* Types of this module cannot be subclassed, so an object's type leads to the module. */
static inline struct py_state *py_state_of(PyObject *object)
{
    return PyType_GetModuleState(Py_TYPE(object));
}

/* error.c */
PyObject *py_error_raise(const struct py_state *state, const struct px_err *e);     /* NULL */
PyObject *py_error_raise_words(const struct py_state *state, const char *what, const char *why, const char *fix);       /* PX001 */
PyObject *py_error_text(const char *text);      /* str of bytes that may not be UTF-8; None for NULL */
PyObject *py_error_take(char *text);            /* the same, and frees it */

/* words.c: a Python sequence of str, bytes or paths as a NULL-terminated array. */
struct py_words {
    PyObject *keep;             /* tuple of the bytes */
    const char **items;         /* NULL: the sequence was None */
};
int py_words_init(struct py_words *words, PyObject *sequence);
void py_words_done(struct py_words *words);

/* policy.c: a policy cannot be changed while a call that released the GIL uses it. */
struct py_policy {
    PyObject_HEAD
    struct px_policy *policy;
    int users;
};
extern PyType_Spec py_policy_spec;

/* box.c */
extern PyType_Spec py_box_spec;
PyObject *py_box_start(PyObject *module, PyObject *args, PyObject *words);
PyObject *py_box_stay(PyObject *module, PyObject *args);
PyObject *py_box_take(struct py_state *state, struct px_box *box);      /* an object for a box that was started elsewhere */
/* Locked for this thread until py_box_leave; NULL with an exception, also if it is still running. */
struct px_box *py_box_enter_ended(PyObject *object);
void py_box_leave(PyObject *object);

/* files.c */
extern PyType_Spec py_files_spec;
struct px_files;
PyObject *py_files_of(struct py_state *state, const struct px_files *files);   /* a copy with the same rights */

/* task.c */
extern PyType_Spec py_tasks_spec, py_task_run_spec;

/* worker.c */
extern PyType_Spec py_worker_spec;
