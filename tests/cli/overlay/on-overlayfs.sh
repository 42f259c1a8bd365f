# Root on overlayfs (the root of every container), where owners cannot be mapped: what needs that is refused before anything starts, with what
# to do. A root that stays as it is needs no such thing.
as_root
need_overlay_dir
mkdir low up work m
cat >inside.sh <<'INSIDE'
. "$1/lib.sh"
mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work m 2>/dev/null || skip 'no overlay can be mounted here'
cp -a rootfs m/rootfs
mkdir m/d
"$PX" exec --rootfs "$PWD/m/rootfs" -- /bin/busybox echo 'it can be read'
try "$PX" exec --rootfs "$PWD/m/rootfs" --overlay -- /bin/busybox echo RAN
says "$PX" exec --rootfs "$PWD/rootfs" --overlay="$PWD/m/changes" -- /bin/busybox echo RAN
says "$PX" exec --changes "$PWD/m/d" -- echo RAN
ls m/d
INSIDE
unshare --mount bash -eu inside.sh "$1" >out 2>&1 || { status=$?; cat out >&2; exit $status; }
sed "s,$PWD,DIR," out
