# A profile of one's own: a deny list, conditions on 64 bits, each kind of answer.
need python3
cat >p.json <<'P'
{"defaultAction": "SCMP_ACT_ALLOW",
 "syscalls": [
   {"names": ["getpgid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 11},
   {"names": ["getsid"], "action": "SCMP_ACT_ERRNO"},
   {"names": ["lseek"], "action": "SCMP_ACT_ERRNO", "errnoRet": 12,
    "args": [{"index": 1, "value": 4294967296, "op": "SCMP_CMP_GE"}, {"index": 2, "value": 0, "op": "SCMP_CMP_EQ"}]},
   {"names": ["personality"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13, "includes": {"caps": ["CAP_SYS_ADMIN"]}},
   {"names": ["getpriority"], "action": "SCMP_ACT_KILL_PROCESS"}]}
P
"$PX" exec --seccomp p.json -- python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, *args):
    r = libc.syscall(number, *map(ctypes.c_long, args))
    print(name, ctypes.get_errno() if r < 0 else "works")
call("getpgid", 121, 0)
call("getsid", 124, 0)
call("lseek far", 8, -1, 1 << 32, 0)
call("lseek near", 8, -1, (1 << 32) - 1, 0)
call("lseek from the end", 8, -1, 1 << 32, 2)
call("personality", 135, 0xffffffff)
'
try "$PX" exec --seccomp p.json -- python3 -c 'import os; os.getpriority(os.PRIO_PROCESS, 0)' 2>/dev/null
