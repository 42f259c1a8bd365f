# Rules, approval, paths, notes: the shell tool of a worker.
mkdir -p notes own && echo one >notes/a.md
cat >w.yaml <<'YAML'
sandbox:
  paths:
    notes: {root: ./notes}
    out: {root: ./out, mode: rw}
shell_rules:
  - {pattern: cat, approval_required: false, sandbox_paths: [notes]}
  - {pattern: cp}
  - {pattern: sleep, approval_required: false}
workers: [child]
attachment_policy: {allowed_suffixes: [.md], max_total_bytes: 4}
YAML
cat >child.yaml <<'YAML'
sandbox: {paths: {own: {root: ./own}}}
shell_default: {approval_required: false}
YAML
"$PX" worker check w.yaml
try "$PX" worker shell w.yaml -- cat notes/a.md
says "$PX" worker shell w.yaml -- cat /etc/passwd
says "$PX" worker shell w.yaml -- 'cat notes/a.md; id'
try "$PX" worker shell w.yaml -- 'cat notes/a.md | cat && cat notes/none 2>/dev/null'
says "$PX" worker shell w.yaml -- 'cat notes/a.md > out/c.md'
try "$PX" worker shell w.yaml --approve-all -- 'cp notes/a.md out/c.md 2>out/err; exit 7'
cat out/c.md
says "$PX" worker shell w.yaml -- cp notes/a.md out/b.md
says "$PX" worker shell w.yaml --strict -- cp notes/a.md out/b.md
try "$PX" worker shell w.yaml --approve-all -- cp notes/a.md out/b.md
cat out/b.md
try "$PX" worker shell w.yaml --approve-all -- cp out/b.md notes/c.md 2>&1
"$PX" --json worker shell w.yaml --timeout 1 -- sleep 100 | jq '{ok, exit_code, stderr}' -c
try "$PX" worker call w.yaml child --attach notes/a.md -- cat /attachments/a.md
try "$PX" worker call w.yaml child -- ls
says "$PX" worker call w.yaml other -- ls
says "$PX" worker call w.yaml child --attach out/b.txt -- ls
says "$PX" worker call w.yaml child --attach /etc/a.md -- ls
echo 1234 >notes/a.md
says "$PX" worker call w.yaml child --attach notes/a.md -- ls
echo 'sandbox: {paths: {a: {root: a, mode: x}}}' >bad.yaml
says "$PX" worker check bad.yaml
says "$PX" worker shell none.yaml -- ls
