# Most containers have a read-only /proc/sys: the error says so, and what helps.
as_root
"$PX" exec -- true || skip 'no box starts here'
unshare --mount sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys' 2>/dev/null || skip 'no mounts can be made here'
try unshare --mount sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && "$PX" exec -- true' 2>&1
