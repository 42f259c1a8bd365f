# Links of the tree lead around in the tree; one in the place of a directory that px makes gets nobody out.
make_rootfs
mkdir "$TMP/outside"
chmod 777 "$TMP/outside"
rmdir "$TMP/rootfs/etc"
ln -s "$TMP/outside" "$TMP/rootfs/etc"
ln -s "$TMP/outside" "$TMP/rootfs/dev"
ln -s "$TMP/outside" "$TMP/rootfs/tmp"
ln -s / "$TMP/rootfs/proc"
ln -s "$TMP/outside" "$TMP/rootfs/home"
try "$PX" exec --rootfs "$TMP/rootfs" -c 'cat /etc/hostname; ls -d /dev/null'
find "$TMP/outside" -mindepth 1
