# python is python3 where the host has that alone; where it has both, its own.
need python3
[ -x /usr/bin/python3 ] || skip 'python3 is not in /usr/bin'
"$PX" exec -- python -c 'import sys; print("python", sys.version_info.major)'
"$PX" exec -c 'python -c "print(6 * 7)"; touch /usr/bin/x /usr/bin/python /etc/px/usr/x 2>/dev/null || echo read-only'
"$PX" exec -c 'ls /usr/bin | sort | uniq -d | wc -l; test "$(ls /usr/bin | wc -l)" -gt 50 && echo many'
