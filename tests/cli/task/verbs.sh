# Workspaces, actions, branches: the words of every verb.
mkdir -p configs
echo 'allowed_binaries: [sh, cat]' >configs/sandbox.yaml
try "$PX" task prepare t1 --text a.txt=one --text d/b.txt=two
try "$PX" task apply t1 -- sh -c 'echo more >> a.txt; echo out'
try "$PX" task apply t1 --discard -- sh -c 'rm d/b.txt'
try "$PX" task apply t1 -- rm a.txt
try "$PX" task test t1 -- sh -c 'exit 3'
try "$PX" task fork t1 t2
try "$PX" task apply t2 -- sh -c 'rm a.txt; echo three > d/b.txt'
try "$PX" task diff t2
try "$PX" task apply-from t2 --to t1
try "$PX" task diff t1 t2
"$PX" task log t1 | jq -c '{event, exit_code, error, changed_files}'
echo '{"task":"t3","from":"t1","command":["cat","d/b.txt"],"id":"x"}' >a.jsonl
try "$PX" task run --jobs 2 --from a.jsonl >run.out
head -n 1 run.out | jq -c '{line, id, exit_code, stdout}'
try "$PX" task run --jobs 2 --from a.jsonl
"$PX" --json task report | jq -c '{tasks, actions, ok, failed, refused}'
says "$PX" task fork t1 t2
says "$PX" task prepare ../x --text a=b
says "$PX" task prepare t1 --text ../a=b
says "$PX" task apply none -- sh
says "$PX" task apply t1
says "$PX" task diff
says "$PX" task run
says "$PX" task what
echo 'mem_limit_mb: much' >configs/sandbox.yaml
says "$PX" task prepare t1
try "$PX" task cleanup t1 --config /dev/null
