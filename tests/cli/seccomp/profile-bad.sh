# Each mistake by its place; nothing is started.
bad() { printf '%s' "$1" >p.json; says "$PX" exec --seccomp p.json -- echo started; }
bad '{
  "defaultAction": "SCMP_ACT_ALLOW",
  "syscalls": [}'
bad '{"syscalls": []}'
bad '{"defaultAction": "SCMP_ACT_NOTIFY"}'
bad '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_LOG", "args": [{"index": 0, "value": 1, "op": "EQ"}]}]}'
bad '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_LOG", "args": [{"index": 0, "value": -1, "op": "SCMP_CMP_EQ"}]}]}'
bad '{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["read", "execve"], "action": "SCMP_ACT_ALLOW"}]}'
says "$PX" exec --seccomp "$TMP/none.json" -- echo started
says "$PX" exec --seccomp / -- echo started
says "$PX" policy show --seccomp p.json
