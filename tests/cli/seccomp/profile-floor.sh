# A profile that allows everything does not open what no box may do.
need python3
echo '{"defaultAction": "SCMP_ACT_ALLOW"}' >all.json
mkdir work
chmod 777 work
"$PX" exec --seccomp all.json --work-dir "$TMP/work" -- python3 -c '
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, *args):
    r = libc.syscall(number, *map(ctypes.c_long, args))
    print(name, errno.errorcode[ctypes.get_errno()] if r < 0 else "works")
call("unshare", 272, 0x10000000)
call("clone", 56, 0x10000000 | 17, 0, 0, 0, 0)
call("clone3", 435, 0, 0)
call("mount", 165, 0, 0, 0, 0, 0)
call("open_tree", 428, -100, 0, 0)
call("io_uring_setup", 425, 1, 0)
call("bpf", 321, 0, 0, 0)
call("keyctl", 250, 0, 0, 0)
call("vsock", 41, 40, 1, 0)
call("mptcp", 41, 2, 1, 262)
call("TIOCSTI", 16, 0, 0x5412, 0)
call("TIOCSTI with a high word", 16, 0, 0x5412 | 1 << 40, 0)
call("openat2", 437, -100, 0, 0, 0)
call("limits of another", 302, 1, 7, 0, 0)
call("call 900", 900)
call("x32", 0x40000000 | 39)
open("f", "w").close()
f, g = ctypes.create_string_buffer(b"f"), ctypes.create_string_buffer(b"g")
call("chmod 4755", 90, ctypes.addressof(f), 0o4755)
call("chmod 755", 90, ctypes.addressof(f), 0o755)
call("whiteout", 316, -100, ctypes.addressof(f), -100, ctypes.addressof(g), 4)
'
