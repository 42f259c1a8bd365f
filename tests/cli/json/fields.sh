# Every field of the result, and their kinds.
need jq
"$PX" --json exec -c 'echo out; echo err >&2' >"$TMP/out"
wc -l <"$TMP/out"
jq -c 'keys_unsorted' "$TMP/out"
jq -c '[.schema, .argv, .status, .reason, .exit_code, .signal, .timed_out, .oom_killed, .stdout, .stderr, .truncated, .limits_hit, .denials, .hints, .changed_files, .diff, .isolation.tier]' "$TMP/out"
jq -c '[.id, .wall_s, .cpu_user_s, .cpu_sys_s, .memory_peak_bytes, .memory_source, .io_read_bytes, .io_write_bytes, .isolation.mechanisms, .isolation.missing] | map(type)' "$TMP/out"
