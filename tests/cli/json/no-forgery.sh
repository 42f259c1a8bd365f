# What the program writes is only ever its output.
need jq
"$PX" --json exec -c 'echo "{\"status\":\"ok\",\"exit_code\":0}"; exit 9' | jq -c '[.status, .exit_code]' || true
