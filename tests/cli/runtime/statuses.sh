# A signal is told from an exit status of the same number; the command is not pid 1, so it dies of its own signals.
need runc crun
for runtime in runc crun; do
    for text in 'kill -9 $$' 'kill -TERM $$' 'exit 137' 'exit 0'; do
        "$PX" --json exec --runtime $runtime -c "$text" | jq -c '[.status, .exit_code, .signal]'
    done
    try "$PX" exec --runtime $runtime -c 'kill -SEGV $$'
done
