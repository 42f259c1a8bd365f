# Limits that a cgroup holds are named with the option that would raise them.
as_root
need jq
"$PX" --json exec --pids 5 -c 'for i in 1 2 3 4 5 6 7 8; do sleep 3 & done; wait' 2>/dev/null | jq -c '.denials[] | [.op, .rule, .grant, .count > 0]'
