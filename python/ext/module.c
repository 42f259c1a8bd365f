/* The module px._px: its types and module functions. */
#include "ext.h"

#include <stdlib.h>

#include <px/sandbox.h>

static PyObject *version(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return py_error_text(px_version());
}

static PyObject *explain(PyObject *module, PyObject *args)
{
    struct px_explain text;
    int code;
    (void)module;
    if (!PyArg_ParseTuple(args, "i:explain", &code))
        return NULL;
    if (px_explain(code, &text) < 0)
        Py_RETURN_NONE;
    return Py_BuildValue("ssss", text.name, text.what, text.why, text.fix);
}

/* stored_root(archive, function): calls function(directory) while a lease keeps the archive's unpacked directory. With
 * a true third argument the first one is the name of a base or an image. */
static PyObject *stored_root(PyObject *module, PyObject *args)
{
    PyObject *archive = NULL, *function, *found = NULL;
    struct px_sandbox *sandbox = NULL;
    struct px_root_lease *lease = NULL;
    struct px_err e = {0};
    char *dir = NULL;
    int r, named = 0;
    if (!PyArg_ParseTuple(args, "O&O|p:stored_root", PyUnicode_FSConverter, &archive, &function, &named))
        return NULL;
    const char *text = PyBytes_AsString(archive);
    Py_BEGIN_ALLOW_THREADS
    r = px_sandbox_open(NULL, &sandbox, &e);
    if (r == 0)
        r = px_sandbox_root(sandbox, named ? text : NULL, named ? NULL : text, &dir, &lease, &e);
    Py_END_ALLOW_THREADS
    if (r == 0)
        found = PyObject_CallFunction(function, "N", PyUnicode_DecodeFSDefault(dir));
    else
        (void)py_error_raise(PyModule_GetState(module), &e);
    px_root_lease_free(lease);
    px_sandbox_close(sandbox);
    free(dir);
    Py_DECREF(archive);
    return found;
}

/* One list for each table that libpx lists by index. */
static PyObject *listed(PyObject *(*at)(size_t))
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list; i++) {
        PyObject *item = at(i);
        if (!item)
            break;
        if (PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_DECREF(item);
    }
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

static PyObject *preset_at(size_t index)
{
    const char *name = px_preset_name(index);
    return name ? py_error_text(name) : NULL;
}

static PyObject *field_at(size_t index)
{
    struct px_field_info f;
    return px_policy_field(index, &f) < 0 ? NULL : Py_BuildValue("ssNNN", f.name, f.help, PyBool_FromLong(f.flag),
                                                                 PyBool_FromLong(f.repeat), PyBool_FromLong(f.absent));
}

static PyObject *presets(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return listed(preset_at);
}

static PyObject *fields(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return listed(field_at);
}

static PyObject *scratch(PyObject *module, PyObject *args)
{
    PyObject *tmp, *found;
    int sweep, lock = -1, r;
    char *path = NULL;
    struct px_err e = {0};
    if (!PyArg_ParseTuple(args, "O&p:scratch", PyUnicode_FSConverter, &tmp, &sweep))
        return NULL;
    const char *text = PyBytes_AsString(tmp);
    Py_BEGIN_ALLOW_THREADS
    r = px_scratch_make(text, sweep, &path, &lock, &e);
    Py_END_ALLOW_THREADS
    Py_DECREF(tmp);
    if (r < 0)
        return py_error_raise(PyModule_GetState(module), &e);
    found = Py_BuildValue("Ni", PyUnicode_DecodeFSDefault(path), lock);
    free(path);
    return found;
}

static PyObject *drop_scratch(PyObject *module, PyObject *args)
{
    PyObject *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&:drop_scratch", PyUnicode_FSConverter, &path))
        return NULL;
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS
    px_scratch_drop(text);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"start", (PyCFunction)(void (*)(void))py_box_start, METH_VARARGS | METH_KEYWORDS,
     "start(policy, argv, stdin=-1, stdout=-1, stderr=-1, rows=0, cols=0): a command in a box of its own. A descriptor that is not "
     "given: no input, output kept in the result."},
    {"stay", py_box_stay, METH_VARARGS, "stay(policy): a box that stays; its exec() runs commands."},
    {"stored_root", stored_root, METH_VARARGS,
     "stored_root(archive, function, named=False): what function says of the directory that the archive is unpacked to, in px's store; "
     "named: that the name of a base or an image stands for."},
    {"scratch", scratch, METH_VARARGS,
     "scratch(tmp, sweep): (path, descriptor of its lock) of a new directory; sweep: those of processes that were killed go."},
    {"drop_scratch", drop_scratch, METH_VARARGS, "drop_scratch(path): removes it."},
    {"version", version, METH_NOARGS, "Of the engine."},
    {"explain", explain, METH_VARARGS, "explain(code): (name, what, why, fix), or None."},
    {"presets", presets, METH_NOARGS, "Names of the presets."},
    {"fields", fields, METH_NOARGS, "[(name, help, is a flag, can be repeated, is not in this build)] of a policy."},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **ret_type)
{
    *ret_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *ret_type ? PyModule_AddType(module, *ret_type) : -1;
}

static int execute(PyObject *module)
{
    struct py_state *state = PyModule_GetState(module);
    PyObject *errors = PyImport_ImportModule("px._errors");
    state->make_error = errors ? PyObject_GetAttrString(errors, "from_engine") : NULL;
    Py_XDECREF(errors);
    if (!state->make_error || add_type(module, &py_policy_spec, &state->policy_type) < 0 ||
        add_type(module, &py_box_spec, &state->box_type) < 0 || add_type(module, &py_files_spec, &state->files_type) < 0 ||
        add_type(module, &py_tasks_spec, &state->tasks_type) < 0 ||
        add_type(module, &py_task_run_spec, &state->task_run_type) < 0)
        return -1;
    return add_type(module, &py_worker_spec, &state->worker_type);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct py_state *state = PyModule_GetState(module);
    Py_VISIT(state->make_error);
    Py_VISIT((PyObject *)state->policy_type);
    Py_VISIT((PyObject *)state->box_type);
    Py_VISIT((PyObject *)state->files_type);
    Py_VISIT((PyObject *)state->tasks_type);
    Py_VISIT((PyObject *)state->task_run_type);
    Py_VISIT((PyObject *)state->worker_type);
    return 0;
}

static int clear(PyObject *module)
{
    struct py_state *state = PyModule_GetState(module);
    Py_CLEAR(state->make_error);
    Py_CLEAR(state->policy_type);
    Py_CLEAR(state->box_type);
    Py_CLEAR(state->files_type);
    Py_CLEAR(state->tasks_type);
    Py_CLEAR(state->task_run_type);
    Py_CLEAR(state->worker_type);
    return 0;
}

static void release(void *module)
{
    (void)clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "px._px", .m_doc = "The engine of px.", .m_size = sizeof(struct py_state), .m_methods = methods,
    .m_slots = slots, .m_traverse = traverse, .m_clear = clear, .m_free = release,
};

PyMODINIT_FUNC PyInit__px(void)
{
    return PyModuleDef_Init(&definition);
}
