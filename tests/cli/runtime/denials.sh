# What the filter refuses is told, also through a runtime.
need runc crun
for runtime in runc crun; do
    "$PX" --json exec --runtime $runtime -c 'unshare -U true 2>/dev/null; true' | jq -c '[.status, .denials[0].op, .denials[0].target, .denials[0].rule]'
done
