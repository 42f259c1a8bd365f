# What strict takes away, and its neighbours that stay.
need python3
"$PX" exec --seccomp strict -- python3 -c '
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, *args):
    r = libc.syscall(number, *args)
    print(name, errno.errorcode[ctypes.get_errno()] if r < 0 else "works")
call("socket unix", 41, 1, 1, 0)
call("socket inet", 41, 2, 1, 0)
call("socket inet6", 41, 10, 2, 0)
call("socket netlink", 41, 16, 3, 0)
call("shmget", 29, 0, 4096, 0o600)
call("semget", 64, 0, 1, 0o600)
call("mq_open", 240, b"q", 0, 0, 0)
call("io_setup", 206, 1, 0)
call("inotify_init1", 294, 0)
call("eventfd2", 290, 0, 0)
call("splice", 275, -1, 0, -1, 0, 1, 0)
call("seccomp", 317, 1, 0, 0)
call("prctl(PR_SET_SECCOMP)", 157, 22, 2, 0, 0, 0)
call("prctl(PR_GET_DUMPABLE)", 157, 3, 0, 0, 0, 0)
call("landlock_create_ruleset", 444, 0, 0, 1)
call("sched_setaffinity", 203, 0, 8, b"\x01" + bytes(7))
call("sched_getaffinity", 204, 0, 128, ctypes.create_string_buffer(128))
call("setpriority", 141, 0, 0, 5)
call("unshare", 272, 0x10000000)
'
