# A box without tar: single files go through sh and cat, and a directory is refused.
trap '"$PX" box stop --all' EXIT
make_rootfs
ln -s busybox "$TMP/rootfs/bin/chmod"
ln -s busybox "$TMP/rootfs/bin/printf"
ln -s busybox "$TMP/rootfs/bin/test"
"$PX" box start --name plain --rootfs "$TMP/rootfs"
echo text >f && chmod 755 f
"$PX" box copy f plain:/tmp/g
"$PX" box exec plain -- ls -l /tmp/g | cut -c1-10
"$PX" box copy plain:/tmp/g h
cat h
says "$PX" box copy rootfs plain:/tmp
says "$PX" box copy plain:/tmp out
says "$PX" box copy plain:/nosuch out
