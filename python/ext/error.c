/* Errors of libpx as exceptions. */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

#include <px/files.h>

PyObject *py_error_text(const char *text)
{
    if (!text)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *py_error_take(char *text)
{
    PyObject *found = py_error_text(text);
    free(text);
    return found;
}

/* The message for a model; None if it is not an error of the file sandbox. */
static PyObject *message_of(const struct px_err *e)
{
    char *text = NULL;
    if (!px_files_class(e->code) || px_files_message(e, &text, NULL) < 0)
        Py_RETURN_NONE;
    return py_error_take(text);
}

PyObject *py_error_raise(const struct py_state *state, const struct px_err *e)
{
    PyObject *error = PyObject_CallFunction(
        state->make_error, "iiNNNNNN", e->code, e->sys, py_error_text(e->what), py_error_text(e->why), py_error_text(e->fix),
        py_error_text(e->details), py_error_text(px_files_class(e->code)), message_of(e));
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *py_error_raise_words(const struct py_state *state, const char *what, const char *why, const char *fix)
{
    struct px_err e = {.code = PX_E_USAGE};
    PyOS_snprintf(e.what, sizeof e.what, "%s", what);
    PyOS_snprintf(e.why, sizeof e.why, "%s", why);
    PyOS_snprintf(e.fix, sizeof e.fix, "%s", fix);
    return py_error_raise(state, &e);
}
