# What is not understood is said, and the command runs.
cat >p.json <<'P'
{"defaultAction": "SCMP_ACT_ALLOW", "flags": [],
 "syscalls": [{"names": ["nosuch", "socketcall", "getsid"], "action": "SCMP_ACT_ERRNO", "arg": []}]}
P
"$PX" exec --seccomp p.json -- echo ran
