# The command's own output and status, whoever makes the box.
need runc crun
for runtime in runc crun; do
    try "$PX" exec --runtime $runtime -- echo hello
    try "$PX" exec --runtime $runtime -c 'echo out; echo err >&2; exit 3' 2>&1
    "$PX" --json exec --runtime $runtime -c 'echo out; exit 4' | jq -rc '.status, .exit_code, .stdout, .isolation.tier, .argv[0]'
done
