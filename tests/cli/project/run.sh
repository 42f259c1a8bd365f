# px run, px test and px explain run on this machine: targets, statuses, words, JSON. Sandboxes are in tests/projects_run.py.
need jq python3.11
export PX_HOME=$TMP/home
mkdir -p "$TMP/demo/sub"
cd "$TMP/demo"
"$PX" init
says "$PX" run app.py
"$PX" -q sync
printf 'import os, sys\nprint(sys.argv, os.path.basename(os.getcwd()), os.environ.get("MODE"))\n' >app.py
"$PX" run app.py 'a b' --json
(cd sub && "$PX" run app.py | sed "s,$TMP,TMP,")
try "$PX" run python -c 'import sys; print("to stdout"); sys.exit(7)'
try "$PX" run sh -c 'kill -9 $$'
echo in | "$PX" run python3 -c 'print(input())'
says "$PX" run nosuch
says "$PX" run data.txt
echo data >data.txt
says "$PX" run data.txt
says "$PX" run python3.4
says "$PX" run https://example.org/app.py
says "$PX" test
printf 'import sys\nprint("tests", sys.argv[1:])\n' >runtests.py
"$PX" test -- -k name
"$PX" --json run python -c 'print(1)' | jq -c '[.status, .message, .details.code, .details.stdout, .details.target, .details.sandbox]'
("$PX" --json run python -c 'raise ValueError("no")' || true) | jq -c '[.status, .message, .details.code, (.details.traceback | endswith("ValueError: no\n"))]'
("$PX" --json run nosuch || true) | jq -c '[.status, .message, .details.code]'
"$PX" explain run app.py x | sed -E "s,$TMP,TMP,g; s,[0-9a-f]{64},ID,g"
"$PX" --json explain test | jq -c '[.details.engine, .details.kind, .details.action, .details.sandbox.enabled]'
printf '\n[tool.px.env]\nMODE = "x"\n' >>pyproject.toml
says "$PX" run app.py
says "$PX" run --frozen app.py
"$PX" -q sync
"$PX" run app.py
rm -r .px
says "$PX" run --frozen app.py
CI=1 says "$PX" test
"$PX" run app.py 2>/dev/null
ls -A
