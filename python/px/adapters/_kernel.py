"""The interpreter that runs in the sandbox, as its source: a request is a line of JSON, so is its answer.

What the code prints goes to stderr, which its children have as their stdout too, and a mark says where it ends.
The code can do what it likes with all of this; whoever reads it believes nothing.
"""

KERNEL = r"""
import ast, importlib, json, linecache, os, sys, traceback, types

def run(code, name, space):
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    tree = ast.parse(code, name)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    return None if last is None else eval(compile(last, name, "eval"), space)

def said(error):
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == "<string>":
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))

def answer(request, number, space):
    try:
        importlib.invalidate_caches()
        value = run(request["code"], "<step %d>" % number, space)
        return {} if value is None else {"value": repr(value)[:request["limit"]]}
    except BaseException as error:
        if type(error).__name__ == "FinalAnswerException":
            return {"final": str(error.value)}
        return {"error": said(error)[-request["limit"]:]}

def serve():
    asked, told = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(errors="backslashreplace", line_buffering=True)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    for number, line in enumerate(asked, 1):
        request = json.loads(line)
        found = answer(request, number, module.__dict__)
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(2, request["mark"].encode())
        print(json.dumps(found), file=told, flush=True)

serve()
"""
