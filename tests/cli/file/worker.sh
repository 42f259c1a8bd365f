# The same boundaries from a worker's file and from a project's own.
mkdir -p notes docs project/docs project/notes && echo one >notes/a.md && echo two >project/docs/b.md && echo no >notes/c.txt
cat >w.yaml <<'YAML'
sandbox: {paths: {notes: {root: ./notes, suffixes: [.md]}, out: {root: ./out, mode: rw, max_file_bytes: 4}}}
YAML
cat >project/pyproject.toml <<'TOML'
[project]
name = "demo"
[tool.px.worker]
description = "Reads the documents."
shell_rules = [{pattern = "wc", approval_required = false}]
[tool.px.worker.sandbox]
network = false
[tool.px.worker.sandbox.paths]
docs = {root = "docs", suffixes = [".md"], max_file_bytes = 100}
TOML
"$PX" file roots --worker w.yaml
"$PX" file read --worker w.yaml notes/a.md
"$PX" file write --worker w.yaml out/x --content 1234
says "$PX" file write --worker w.yaml out/y --content 12345
says "$PX" file write --worker w.yaml notes/b.md --content x
says "$PX" file read --worker w.yaml notes/c.txt
says "$PX" file write --worker w.yaml --read-only out/x --content 1
says "$PX" file read --worker w.yaml --root a=notes a/a.md
"$PX" file read --worker w.yaml --base project out/x 2>&1 | head -n 1
"$PX" worker check project/pyproject.toml
"$PX" file read --worker project/pyproject.toml docs/b.md
(cd project && "$PX" file list --worker pyproject.toml)
says "$PX" file read --worker project/pyproject.toml --base . docs/b.md
echo 'name = "x"' >none.toml
says "$PX" file roots --worker none.toml
printf '[tool.px.worker.sandbox]\n\nnetwork = "no"\n' >bad.toml
says "$PX" worker check bad.toml
printf '[tool.px.worker\n' >bad.toml
says "$PX" worker check bad.toml
says "$PX" file roots --worker missing.yaml
