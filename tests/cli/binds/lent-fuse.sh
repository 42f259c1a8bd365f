# The same as lent.sh on FUSE, which has no id-mapped mounts either.
as_root
need fuse-overlayfs
mkdir low up work m
cat >inside.sh <<'INSIDE'
. "$1/lib.sh"
fuse-overlayfs -o "lowerdir=$TMP/low,upperdir=up",workdir=work m 2>/dev/null || skip 'no FUSE can be mounted here'
trap 'cd "$TMP"; umount m; until_gone "lowerdir=$TMP/low"' EXIT
cd m
mkdir d && echo open >d/open && (umask 077 && echo closed >d/closed)
"$PX" exec -v "$PWD/d:/x:ro" -c 'cat /x/open; cat /x/closed 2>/dev/null || echo "may not read"; touch /x/new 2>/dev/null || echo "may not write"'
"$PX" exec --work-dir "$PWD/d" -c 'cat closed; echo more >>open; mkdir sub; echo y >sub/y; stat -c %u closed'
find d -printf '%P %u:%g %y %m\n' | LC_ALL=C sort
INSIDE
unshare --mount bash -eu inside.sh "$1"
