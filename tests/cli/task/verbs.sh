# Workspaces, actions, branches: the words of every verb.
mkdir -p configs
echo 'allowed_binaries: [sh, cat]' >own.yaml
try "$PX" task prepare --config own.yaml t1 --text a.txt=one --text d/b.txt=two
try "$PX" task apply --config own.yaml t1 -- sh -c 'echo more >> a.txt; echo out'
try "$PX" task apply --config own.yaml t1 --discard -- sh -c 'rm d/b.txt'
try "$PX" task apply --config own.yaml t1 -- rm a.txt
try "$PX" task test --config own.yaml t1 -- sh -c 'exit 3'
try "$PX" task fork --config own.yaml t1 t2
try "$PX" task apply --config own.yaml t2 -- sh -c 'rm a.txt; echo three > d/b.txt'
try "$PX" task diff --config own.yaml t2
try "$PX" task apply-from --config own.yaml t2 --to t1
try "$PX" task diff --config own.yaml t1 t2
"$PX" task log --config own.yaml t1 | jq -c '{event, exit_code, error, changed_files}'
echo '{"task":"t3","from":"t1","command":["cat","d/b.txt"],"id":"x"}' >a.jsonl
try "$PX" task run --config own.yaml --jobs 2 --from a.jsonl >run.out
head -n 1 run.out | jq -c '{line, id, exit_code, stdout}'
try "$PX" task run --config own.yaml --jobs 2 --from a.jsonl
"$PX" --json task report --config own.yaml | jq -c '{tasks, actions, ok, failed, refused}'
says "$PX" task fork --config own.yaml t1 t2
says "$PX" task prepare --config own.yaml ../x --text a=b
says "$PX" task prepare --config own.yaml t1 --text ../a=b
says "$PX" task apply --config own.yaml none -- sh
says "$PX" task apply --config own.yaml t1
says "$PX" task diff --config own.yaml
says "$PX" task run --config own.yaml
says "$PX" task what
echo 'mem_limit_mb: much' >configs/sandbox.yaml
says "$PX" task prepare t1
echo 'enable_jail: false' >configs/sandbox.yaml
says "$PX" task prepare t1
"$PX" task prepare --config own.yaml plain --text a=1 >/dev/null
"$PX" task diff --config own.yaml plain 2>&1 | sed -n '/^Why:/{n;p}'
try "$PX" task cleanup t1 --config /dev/null
