# libnuma asks for set_mempolicy in every program that has it, such as ps: that it is not there is no denial.
need python3 jq
"$PX" --json exec -c 'python3 -c "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(238, 0, 0, 0), ctypes.get_errno())
"; ps >/dev/null; exit 1' | jq -c '.stdout, .denials'
