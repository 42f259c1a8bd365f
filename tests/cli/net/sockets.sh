# Families that no namespace covers are not to be had; those that programs need are.
need python3
"$PX" exec -- python3 -c 'import socket
for name, family, kind in [("unix", socket.AF_UNIX, 1), ("inet", socket.AF_INET, 1), ("inet6", socket.AF_INET6, 2), ("vsock", 40, 1), ("alg", 38, 5), ("packet", 17, 3), ("raw", 2, 3), ("bluetooth", 31, 3), ("netlink-audit", 16, 3)]:
    try: socket.socket(family, kind, 9 if name == "netlink-audit" else 0); print(name, "yes")
    except OSError as e: print(name, "no")'
