/* Policy: what a box may see and do. */
#include "ext.h"

static PyObject *policy_new(PyTypeObject *type, PyObject *args, PyObject *words)
{
    static char *names[] = {"preset", NULL};
    const char *preset = NULL;
    struct px_policy *policy = NULL;
    struct px_err e = {0};
    if (!PyArg_ParseTupleAndKeywords(args, words, "|z:Policy", names, &preset))
        return NULL;
    if (px_policy_new(preset, &policy, &e) < 0)
        return py_error_raise(PyType_GetModuleState(type), &e);
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct py_policy *self = (struct py_policy *)alloc(type, 0);
    if (!self) {
        px_policy_free(policy);
        return NULL;
    }
    self->policy = policy;
    return (PyObject *)self;
}

static void policy_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    px_policy_free(((struct py_policy *)object)->policy);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *policy_set(PyObject *object, PyObject *args)
{
    struct py_policy *self = (struct py_policy *)object;
    const char *field;
    PyObject *value, *bytes = NULL;
    struct px_err e = {0};
    if (!PyArg_ParseTuple(args, "sO:set", &field, &value))
        return NULL;
    /* First, because it can run Python code and so let other threads run. */
    if (value != Py_None && !PyUnicode_FSConverter(value, (void *)&bytes))
        return NULL;
    if (self->users > 0) {
        Py_XDECREF(bytes);
        return py_error_raise_words(py_state_of(object), "the policy is in use", "Another thread starts a box with it right now.",
                                    "Give each thread a policy of its own.");
    }
    int r = px_policy_set(self->policy, field, bytes ? PyBytes_AsString(bytes) : NULL, &e);
    Py_XDECREF(bytes);
    if (r < 0)
        return py_error_raise(py_state_of(object), &e);
    Py_RETURN_NONE;
}

static PyObject *policy_text(PyObject *object, int (*make)(const struct px_policy *, char **, struct px_err *))
{
    char *text = NULL;
    struct px_err e = {0};
    if (make(((struct py_policy *)object)->policy, &text, &e) < 0)
        return py_error_raise(py_state_of(object), &e);
    return py_error_take(text);
}

static PyObject *policy_json(PyObject *object, PyObject *none)
{
    (void)none;
    return policy_text(object, px_policy_json);
}

static PyObject *policy_check(PyObject *object, PyObject *none)
{
    (void)none;
    return policy_text(object, px_policy_check);
}

static PyObject *policy_prepare(PyObject *object, PyObject *none)
{
    struct py_policy *self = (struct py_policy *)object;
    struct px_err e = {0};
    int r;
    (void)none;
    self->users++;
    Py_BEGIN_ALLOW_THREADS
    r = px_policy_prepare(self->policy, &e);
    Py_END_ALLOW_THREADS
    self->users--;
    if (r < 0)
        return py_error_raise(py_state_of(object), &e);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set", policy_set, METH_VARARGS, "set(field, value): one field by its name in px-policy(5); value None for a flag."},
    {"json", policy_json, METH_NOARGS, "The policy as a JSON text."},
    {"check", policy_check, METH_NOARGS, "What in it contradicts itself or opens more than one may think, or None."},
    {"prepare", policy_prepare, METH_NOARGS, "Does now what takes long: an archive that is to be the root is unpacked."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, policy_new},
    {Py_tp_dealloc, policy_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, (void *)"What a box may see and do."},
    {0, NULL},
};

PyType_Spec py_policy_spec = {
    .name = "px._px.Policy", .basicsize = sizeof(struct py_policy), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, .slots = slots};
