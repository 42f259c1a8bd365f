/* Sequences of Python as arrays of C. */
#include "ext.h"

static int fill(struct py_words *words, PyObject *list, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *bytes = NULL;
        PyObject *item = PySequence_GetItem(list, i);
        int ok = item ? PyUnicode_FSConverter(item, (void *)&bytes) : 0;
        Py_XDECREF(item);
        if (!ok || PyTuple_SetItem(words->keep, i, bytes) < 0)     /* takes ownership of the bytes, also on failure */
            return -1;
        words->items[i] = PyBytes_AsString(bytes);
    }
    words->items[count] = NULL;
    return 0;
}

int py_words_init(struct py_words *words, PyObject *sequence)
{
    *words = (struct py_words){0};
    if (sequence == Py_None)
        return 0;
    if (PyUnicode_Check(sequence) || PyBytes_Check(sequence)) {
        PyErr_SetString(PyExc_TypeError, "a list of words is wanted, not one text");
        return -1;
    }
    PyObject *list = PySequence_List(sequence);
    Py_ssize_t count = list ? PySequence_Size(list) : -1;
    if (count >= 0) {
        words->keep = PyTuple_New(count);
        words->items = PyMem_Malloc(((size_t)count + 1) * sizeof *words->items);
        if (!words->items)
            PyErr_NoMemory();
    }
    int r = words->keep && words->items ? fill(words, list, count) : -1;
    Py_XDECREF(list);
    if (r < 0)
        py_words_done(words);
    return r;
}

void py_words_done(struct py_words *words)
{
    Py_XDECREF(words->keep);
    PyMem_Free(words->items);
    *words = (struct py_words){0};
}
