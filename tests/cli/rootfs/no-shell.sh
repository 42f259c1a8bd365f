# A tree without the program, and one without the loader of a program.
make_rootfs
cp /usr/bin/true "$TMP/rootfs/bin/dynamic"
try "$PX" exec --rootfs "$TMP/rootfs" -- bash
try "$PX" exec --rootfs "$TMP/rootfs" -- dynamic
