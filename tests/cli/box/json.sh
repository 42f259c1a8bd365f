# For programs: one object each.
need jq
trap '"$PX" box stop --all >/dev/null' EXIT
"$PX" --json box start --name j --idle 1h --max-life 1d -e SECRET=hush | jq -c 'keys'
"$PX" box exec j -d -- sleep 1000 >/dev/null
"$PX" --json box list | jq -c '.boxes | map([.name, .state, .preset, .idle_s, .max_life_s, .commands_running, .memory_source])'
"$PX" --json box show j | jq -c '[.schema, .name, (.id | length), .commands[0].argv, .commands[0].detached, .commands[0].running, .isolation.tier, .policy.env_names, (.keeper_pid > 1)]'
"$PX" --json box show j | grep -c hush || true
until [ "$("$PX" --json box show j | jq -r '.processes[0].command')" = 'sleep 1000' ]; do sleep 0.05; done
"$PX" --json box show j | jq -c '.processes | map([.parent, .command])'
"$PX" --json box signal j TERM | jq -c .
"$PX" --json box attach j | jq -c '[.status, .signal]' || true
"$PX" --json box show nobody | jq -c '[.status, .details.code]' || true
"$PX" --json box stop j | jq -c .
"$PX" --json box list | jq -c .
